"""Colours that colour-blind readers can tell apart, as data: Okabe-Ito for categories, cividis for quantities.

Neutral colours are named by their role ("ink", "paper", ...), so that a page can swap them for a dark theme; colours
that carry data are the same in both themes and are written as `#rrggbb`.
"""

from __future__ import annotations

# Okabe and Ito, "Color Universal Design" (2008), https://jfly.uni-koeln.de/color/ ; black is left out, it is the ink.
CATEGORIES = ("#56b4e9", "#e69f00", "#009e73", "#f0e442", "#cc79a7", "#0072b2", "#d55e00")

# Nunez, Anderton, Renslow, "Optimizing colormaps with consideration for color vision deficiency" (2018), 256 steps.
_CIVIDIS = (
    "00224e00234f00245100255300255400265600275800285900285b00295d002a5f002a61002b62002c64002c66002d68002e6a002e6c"
    "002f6d00306f0030700031700031710132710533710833700c34700f357012357014367016377018376f1a386f1c396f1e3a6f203a6f"
    "213b6e233c6e243c6e263d6e273e6e293f6e2a3f6d2b406d2d416d2e416d2f426d31436d32436d33446d34456c35456c36466c38476c"
    "39486c3a486c3b496c3c4a6c3d4a6c3e4b6c3f4c6c404c6c414d6c424e6c434e6c444f6c45506c46516c47516c48526c49536c4a536c"
    "4b546c4c556c4d556c4e566c4f576c50576c51586d52596d535a6d545a6d555b6d555c6d565c6d575d6d585e6d595e6e5a5f6e5b606e"
    "5c616e5d616e5e626e5e636f5f636f60646f61656f62656f636670646770656870656870666970676a71686a71696b716a6c716b6d72"
    "6c6d726c6e726d6f726e6f736f70737071737172747272747273747374757474757575757676767777767777777878777979777a7a78"
    "7b7a787c7b787d7c787e7c787e7d787f7e78807f78817f788280798381798482798582798683798784788885788985788a86788b8778"
    "8c88788d88788e89788f8a78908b78918b78928c78928d78938e78948e77958f779690779791779892779992779a93769b94769c9576"
    "9d95769e96769f9775a09875a19975a29975a39a74a49b74a59c74a69c74a79d73a89e73a99f73aaa073aba072aca172ada272aea371"
    "afa471b0a571b1a570b3a670b4a76fb5a86fb6a96fb7a96eb8aa6eb9ab6dbaac6dbbad6dbcae6cbdae6cbeaf6bbfb06bc0b16ac1b26a"
    "c2b369c3b369c4b468c5b568c6b667c7b767c8b866c9b965cbb965ccba64cdbb63cebc63cfbd62d0be62d1bf61d2c060d3c05fd4c15f"
    "d5c25ed6c35dd7c45cd9c55cdac65bdbc75adcc859ddc858dec958dfca57e0cb56e1cc55e2cd54e4ce53e5cf52e6d051e7d150e8d24f"
    "e9d34eead34cebd44bedd54aeed649efd748f0d846f1d945f2da44f3db42f5dc41f6dd3ff7de3ef8df3cf9e03afbe138fce236fde334"
    "fee434fee535fee636fee838"
)
HEAT = tuple("#" + _CIVIDIS[i : i + 6] for i in range(0, len(_CIVIDIS), 6))

LIGHT = {
    "ink": "#1b1f24", "muted": "#57606a", "paper": "#ffffff", "panel": "#f6f8fa", "line": "#c8d0d9",
    "word": "#0a3069", "text": "#0a5a2a", "number": "#8a3a00", "added": "#116329", "removed": "#b3261e",
    "lit": "#fff0a8",
}
DARK = {
    "ink": "#e6edf3", "muted": "#9aa5b1", "paper": "#0d1117", "panel": "#161b22", "line": "#3a424c",
    "word": "#8cc2ff", "text": "#8ddb8c", "number": "#ffb77c", "added": "#56d364", "removed": "#ff938a",
    "lit": "#3d3500",
}


def category(number: int) -> str:
    """The colour of category `number`; they repeat after seven, so a view writes the number beside the colour.

    >>> category(0), category(7) == category(0)
    ('#56b4e9', True)
    """
    return CATEGORIES[number % len(CATEGORIES)]


def heat(value: float, low: float, high: float) -> str:
    """The cividis colour of `value` between `low` (dark blue) and `high` (yellow).

    >>> heat(0, 0, 10), heat(10, 0, 10)
    ('#00224e', '#fee838')
    """
    if high <= low:
        return HEAT[0]
    return HEAT[min(255, max(0, int((value - low) * 255 / (high - low) + 0.5)))]


def luminance(colour: str) -> float:
    """Relative luminance of `#rrggbb`, 0 (black) to 1 (white), as WCAG 2.2 defines it.

    >>> luminance("#ffffff"), luminance("#000000")
    (1.0, 0.0)
    """
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a: str, b: str) -> float:
    """The WCAG contrast ratio of two colours, 1 (the same) to 21 (black on white).

    >>> round(contrast("#000000", "#ffffff"))
    21
    """
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def ink_on(background: str) -> str:
    """Black or white, whichever reads better on `background`.

    >>> ink_on("#f0e442"), ink_on("#00224e")
    ('#000000', '#ffffff')
    """
    return max(("#000000", "#ffffff"), key=lambda ink: contrast(ink, background))
