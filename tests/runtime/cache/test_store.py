"""Files of the disk cache: whatever happens to them or to their folder costs time, one warning, and nothing else."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flylab import cache_warnings
from flylab.errors import CacheWarning
from flylab.runtime.cache import file_lock, store
from flylab.runtime.cache.store import MAGIC, Store

ROOT = Path(__file__).parents[3]
NAME, DATA = "ab" * 20, b"some bytes \0\xff" * 50
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture(autouse=True)
def _nothing_warned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_warnings, "_said", set())


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Store]:
    found = Store(tmp_path / "cache", 1 << 20)
    assert found.write(NAME, DATA)
    yield found
    found.sweep()


def file_of(kept: Store, name: str = NAME) -> Path:
    return kept.folder / "kept" / name[:2] / name


def warned(call: Callable[[], object]) -> list[str]:
    """What a call warns of."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    assert all(issubclass(each.category, CacheWarning) for each in found)
    return [str(each.message) for each in found]


def test_what_is_written_is_read(kept: Store) -> None:
    assert kept.read(NAME) == DATA
    assert Store(kept.folder, 1 << 20).read(NAME) == DATA
    assert kept.read("cd" * 20) is None


@given(st.binary(max_size=300), st.data())
def test_no_damage_is_read(tmp_path_factory: pytest.TempPathFactory, data: bytes, draw: st.DataObject) -> None:
    """Any byte changed, or any cut: None, and never other bytes."""
    kept = Store(tmp_path_factory.getbasetemp() / "damage", 1 << 20)
    kept.write(NAME, data)
    whole = file_of(kept).read_bytes()
    at = draw.draw(st.integers(0, len(whole) - 1))
    changed = bytes([whole[at] ^ draw.draw(st.integers(1, 255))])
    cut = draw.draw(st.booleans())
    file_of(kept).write_bytes(whole[:at] if cut else whole[:at] + changed + whole[at + 1 :])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert kept.read(NAME) is None


@pytest.mark.parametrize(("damage", "says"), [
    (lambda whole: whole[:-3], "is damaged"),
    (lambda whole: b"", "is damaged"),
    (lambda whole: whole[:20], "is damaged"),
    (lambda whole: whole[: len(MAGIC) - 1], "is damaged"),
    (lambda whole: b'{"truncated": [1, 2', "is damaged"),
    (lambda whole: whole.replace(MAGIC, b"flylab compilation, format 99\n"), "is of another format"),
])
def test_one_warning_and_written_again(kept: Store, damage: Callable[[bytes], bytes], says: str) -> None:
    """Case R12: a truncated file, an unknown version."""
    file = file_of(kept)
    file.write_bytes(damage(file.read_bytes()))
    found = warned(lambda: [kept.read(NAME) for _ in range(3)])
    assert len(found) == 1 and str(file) in found[0] and says in found[0] and "compiled anew" in found[0]
    assert not warned(lambda: kept.write(NAME, DATA))
    assert kept.read(NAME) == DATA


def test_a_file_of_zeros_as_a_crashed_machine_leaves_it(kept: Store) -> None:
    file_of(kept).write_bytes(bytes(len(file_of(kept).read_bytes())))
    assert len(warned(lambda: kept.read(NAME))) == 1


def test_a_folder_in_the_place_of_a_file(kept: Store) -> None:
    """An empty one is replaced; one with something in it is the user's, and stays."""
    file = file_of(kept)
    file.unlink()
    file.mkdir()
    assert len(warned(lambda: kept.read(NAME))) == 1
    assert kept.write(NAME, DATA) and kept.read(NAME) == DATA
    file.unlink()
    file.mkdir()
    (file / "letter").write_text("mine")
    assert len(warned(lambda: kept.write(NAME, DATA))) == 1
    assert (file / "letter").read_text() == "mine"
    assert [p.name for p in file.parent.iterdir()] == [NAME]


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("mine")
    kept = Store(tmp_path / "cache", 1 << 20)
    found = warned(lambda: (kept.read(NAME), kept.write(NAME, DATA), kept.write(NAME, DATA)))
    assert len(found) == 1 and "nothing can be kept" in found[0]
    with kept.alone(NAME) as waited:
        assert not waited
    assert (tmp_path / "cache").read_text() == "mine"


@pytest.fixture
def as_anyone() -> Iterator[Path]:
    """A folder that is root's where root runs the tests, who is then nobody for a while."""
    folder = Path(tempfile.mkdtemp(prefix="flylab-tests-"))
    folder.chmod(0o755)
    yield folder
    if IS_ROOT:
        os.seteuid(0)
    shutil.rmtree(folder)


def test_a_read_only_folder_is_read(as_anyone: Path) -> None:
    """Case R12, also another user's folder: what is there is used, and what is missing costs one warning."""
    kept = Store(as_anyone / "cache", 1 << 20)
    kept.write(NAME, DATA)
    kept._room.thread.join()  # type: ignore[union-attr]
    paths = [kept.folder, *kept.folder.rglob("*")]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    if IS_ROOT:
        os.seteuid(65534)
    assert not warned(lambda: kept.read(NAME)) and kept.read(NAME) == DATA
    with kept.alone(NAME) as waited:
        assert not waited
    found = warned(lambda: (kept.write("cd" * 20, DATA), kept.write("ef" * 20, DATA)))
    assert len(found) == 1 and "nothing can be kept" in found[0] and "Permission denied" in found[0]
    if IS_ROOT:
        os.seteuid(0)
    for path in paths:
        path.chmod(0o755)
    if IS_ROOT:
        kept.folder.chmod(0o700)
        os.seteuid(65534)
        cache_warnings._said.clear()
        found = warned(lambda: (kept.read(NAME), kept.read("cd" * 20), kept.write(NAME, DATA)))
        assert len(found) == 1 and "cannot be read (Permission denied)" in found[0]


@pytest.mark.parametrize("number", [13, 28, 30, 122])
def test_a_system_that_refuses_to_write(kept: Store, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """No permission, a full disk (also in the middle of a file), a read-only disk, a quota: no half of a file stays."""
    real = os.write

    def some(file: int, data: bytes) -> int:
        if len(data) > 100:
            return real(file, data[:100])
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(store.os, "write", some)
    found = warned(lambda: (kept.write("cd" * 20, DATA), kept.write("cd" * 20, DATA)))
    assert len(found) == 1 and os.strerror(number) in found[0] and "goes on without" in found[0]
    monkeypatch.undo()
    assert not list(kept.folder.rglob("*.partial")) and kept.read("cd" * 20) is None and kept.read(NAME) == DATA


def test_two_writers_of_one_file(tmp_path: Path) -> None:
    """Case R12: readers see one or the other, whole, however many write at once."""
    kept, right = Store(tmp_path, 1 << 30), [bytes([n]) * 100_000 for n in range(4)]
    kept.write(NAME, right[0])
    end = time.monotonic() + 0.5
    found: list[bytes | None] = []

    def write(data: bytes) -> None:
        while time.monotonic() < end:
            kept.write(NAME, data)

    threads = [threading.Thread(target=write, args=(data,)) for data in right]
    for thread in threads:
        thread.start()
    while time.monotonic() < end:
        found.append(kept.read(NAME))
    for thread in threads:
        thread.join()
    assert found and all(each in right for each in found)


WRITER = """
import sys
from pathlib import Path
from flylab.runtime.cache import store
kept = store.Store(Path(sys.argv[1]), 1 << 30)
real = store.os.write
def slow(file, data):
    real(file, data[:1000])
    print("in the middle", flush=True)
    sys.stdin.read()
store.os.write = slow
kept.write(sys.argv[2], b"x" * 100_000)
"""


def test_a_writer_that_is_killed_in_the_middle(tmp_path: Path) -> None:
    """What it left does no harm, and goes with time; what was there before stays until then."""
    kept = Store(tmp_path, 1 << 30)
    kept.write(NAME, DATA)
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), NAME], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, cwd=ROOT)
    assert writer.stdout is not None and writer.stdout.readline() == b"in the middle\n"
    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    assert kept.read(NAME) == DATA
    (partial,) = kept.folder.rglob("*.partial")
    kept.sweep()
    assert partial.exists()  # it could be another process's that writes now
    os.utime(partial, (1, 1))
    kept.sweep()
    assert not partial.exists() and kept.read(NAME) == DATA


def test_the_least_recently_used_go(tmp_path: Path) -> None:
    """Ten files of 1000 bytes and more where 5000 may be: those used last stay, nine tenths of the room at most."""
    kept = Store(tmp_path, 1 << 30)
    names = [f"{n:02x}" * 20 for n in range(10)]
    for age, name in enumerate(names):
        kept.write(name, b"x" * 1000)
        os.utime(file_of(kept, name), (time.time() - 1000 + age, time.time() - 1000 + age))
    assert kept.read(names[0])  # which is a use of it
    size = file_of(kept, names[0]).stat().st_size
    small = Store(tmp_path, 5 * size)
    small.sweep()
    assert [name for name in names if file_of(kept, name).exists()] == [names[0], *names[7:]]
    small.sweep()
    assert len(small.files()) == 4


def test_a_clock_that_was_wrong(tmp_path: Path) -> None:
    """A file from the future counts as used now, and does not stay for ever."""
    kept = Store(tmp_path, 1 << 30)
    for name in (NAME, "cd" * 20):
        kept.write(name, DATA)
    os.utime(file_of(kept), (time.time() + 1e8, time.time() + 1e8))
    used = {Path(path).name: when for when, _, path in kept.files()}
    assert used[NAME] <= time.time() and kept.read(NAME) == DATA
    Store(tmp_path, 0).sweep()
    assert not kept.files()


def test_a_process_that_writes_makes_room(tmp_path: Path) -> None:
    """No call of `sweep`: writing does it, behind what writes."""
    kept = Store(tmp_path, 10_000)
    for n in range(40):
        kept.write(f"{n:02x}" * 20, bytes(1000))
        assert kept._room.thread is not None
        kept._room.thread.join()
    assert sum(size for _, size, _ in kept.files()) <= 11_000


def test_the_log_tells_who_and_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Store(tmp_path, 1 << 20)
    for n in range(20):
        kept.note(f"k{n} launch gfx942")
    assert [line[1:] for line in kept.log()] == [[str(os.getpid()), f"k{n}", "launch", "gfx942"] for n in range(20)]
    monkeypatch.setattr(store, "MOST_LOG", 100)
    kept.sweep()
    assert [line[2] for line in kept.log()] == [f"k{n}" for n in range(10, 20)]


def test_one_at_a_time(tmp_path: Path) -> None:
    kept, inside, most = Store(tmp_path, 1 << 20), 0, 0

    def work() -> None:
        nonlocal inside, most
        with kept.alone(NAME):
            inside += 1
            most = max(most, inside)
            time.sleep(0.01)
            inside -= 1

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


HOLDER = """
import sys
from pathlib import Path
from flylab.runtime.cache.store import Store
with Store(Path(sys.argv[1]), 1 << 30).alone(sys.argv[2]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    kept = Store(tmp_path, 1 << 20)
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path), NAME], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, cwd=ROOT)
    assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
    with file_lock.locked(str(next((tmp_path / "locks").iterdir())), 0.0) as waited:
        assert waited  # for nothing: it goes on without
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    with kept.alone(NAME) as waited:
        assert not waited


def test_a_system_without_locks(kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(file_lock.fcntl, "flock", refuse)
    with kept.alone(NAME) as waited:
        assert not waited
    monkeypatch.setattr(file_lock, "fcntl", None)
    with kept.alone(NAME) as waited:
        assert not waited


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_in_the_middle_holds_no_lock(tmp_path: Path) -> None:
    """A child that lives on does not keep what its parent has given back; and its leaving the block gives nothing."""
    script = f"""
import os, signal, sys, time
from pathlib import Path
from flylab.runtime.cache.file_lock import locked
path = {str(tmp_path / "lock")!r}
with locked(path, 1):
    child = os.fork()
    if child == 0:
        time.sleep(60)
with locked(path, 0.0) as waited:
    print(waited)
os.kill(child, signal.SIGKILL)
with locked(path, 1):
    if os.fork() == 0:
        sys.exit(0)
    os.wait()
    os.wait()
    if os.fork() == 0:
        with locked(path, 0.0) as waited:
            print(waited, flush=True)
        os._exit(0)
    os.wait()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.stdout.split() == ["False", "True"], done.stderr


def test_what_is_larger_than_all_may_be_is_told_of_once(tmp_path: Path) -> None:
    """And nothing is written that the next sweep would remove; a limit of 0 asks for that."""
    kept = Store(tmp_path, len(DATA) - 1)
    found = warned(lambda: (kept.write(NAME, DATA), kept.write("cd" * 20, DATA)))
    assert len(found) == 1 and f"a compilation has {len(DATA)} bytes" in found[0]
    assert f"may have {len(DATA) - 1} (FLYLAB_RUNTIME_CACHE_BYTES)" in found[0]
    assert not kept.files() and not kept.write(NAME, DATA)
    assert not warned(lambda: Store(tmp_path, 0).write(NAME, DATA)) and not kept.files()
    assert Store(tmp_path, len(DATA)).write(NAME, DATA)


def test_a_warning_shows_the_users_line(tmp_path: Path) -> None:
    """Not one of flylab's: a launch in a script whose cache cannot be."""
    (tmp_path / "cache").write_text("mine")
    script = tmp_path / "script.py"
    script.write_text("import numpy\nfrom flylab.kernels.elementwise.vector_add import vector_add\n"
                      "a = numpy.zeros(1024, 'float32')\nvector_add(a, a, a, VEC=4)\n")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=100, cwd=ROOT, env={
        "PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(tmp_path), "FLYLAB_RUNTIME_CACHE_DIR": str(tmp_path / "cache"),
        "FLYLAB_EMULATOR_CACHE_DIR": str(tmp_path / "cache")})
    said = done.stderr.splitlines()
    assert said[0].startswith(f"{script}:4: CacheWarning: the cache on disk: nothing can be kept in ")
    assert said[2].startswith(f"{script}:4: CacheWarning: the software device's handlers: nothing can be kept in ")
    assert said[1] == said[3] == "  vector_add(a, a, a, VEC=4)" and len(said) == 4
