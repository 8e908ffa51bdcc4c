"""What errors of HIP say to a user: one row each.

Source of their meanings: HIP's documentation of `hipError_t`.
"""

from __future__ import annotations

RESTART = "nothing more can run on it in this process: restart the kernel of the notebook"
FIND = 'run it on the software device, which names the line: with flylab.use("emulated"): ...'

# Name -> what it says, and what mends it.
SENTENCES: dict[str, tuple[str, str]] = {
    "hipErrorInvalidValue": ("HIP refused an argument",
                             "check grid, block and the tensors; AMD_LOG_LEVEL=3 in the environment tells which"),
    "hipErrorOutOfMemory": ("the device has no memory left for it",
                            "free tensors (torch.cuda.empty_cache() gives back what torch keeps), or use smaller ones"),
    "hipErrorNotInitialized": ("HIP is not initialised", "start a new process; HIP does not work in a forked one"),
    "hipErrorInitializationError": ("HIP cannot be initialised",
                                    "start a new process; HIP does not work in a forked one"),
    "hipErrorInvalidConfiguration": ("the device cannot launch a grid and block like that",
                                     "a block has 1 to 1024 threads"),
    "hipErrorInsufficientDriver": ("the driver is older than the HIP library", "update the driver (amdgpu-install)"),
    "hipErrorNoDevice": ("no AMD GPU is attached, or this user may not use it",
                         "check rocminfo, and that the user is in the groups render and video"),
    "hipErrorInvalidDevice": ("there is no device of that number", "check HIP_VISIBLE_DEVICES"),
    "hipErrorInvalidImage": ("the code object cannot be read", "clear flylab's cache, and compile again"),
    "hipErrorNoBinaryForGpu": ("the code object is for another chip than the device",
                               "compile for the device's own chip: flylab.use(\"hip\")"),
    "hipErrorSharedObjectInitFailed": ("the code object cannot be loaded", "clear flylab's cache, and compile again"),
    "hipErrorInvalidHandle": ("a stream, event or module is not, or no longer, one of this device",
                              "pass a live stream of the device that the launch runs on"),
    "hipErrorNotFound": ("the code object holds no kernel of that name", "clear flylab's cache, and compile again"),
    "hipErrorNotReady": ("it has not happened yet", "synchronize first"),
    "hipErrorIllegalAddress": (f"a kernel touched memory that is not its own; {RESTART}", FIND),
    "hipErrorLaunchOutOfResources": ("the kernel needs more registers or LDS than the device has for a block",
                                     "use a smaller block or smaller tiles"),
    "hipErrorLaunchTimeOut": (f"a kernel ran too long; {RESTART}", FIND),
    "hipErrorAssert": (f"a check in a kernel failed; {RESTART}", FIND),
    "hipErrorLaunchFailure": (f"a kernel went wrong while it ran; {RESTART}", FIND),
    "hipErrorStreamCaptureUnsupported": ("the stream is being captured into a graph, which forbids that",
                                         "pass tensors of the device, call once before the capture, and capture no "
                                         "kernel that prints or checks, which is waited for"),
    "hipErrorStreamCaptureInvalidated": ("the capture of a graph was broken off by an earlier error",
                                         "mend the earlier error, and capture again"),
}


def sentence(name: str) -> tuple[str, str]:
    """What an error of HIP says, and the hint.

    >>> sentence("hipErrorNotReady")
    ('it has not happened yet', 'synchronize first')
    """
    return SENTENCES.get(name, ("HIP reports an error", "look the name up in HIP's documentation of hipError_t"))
