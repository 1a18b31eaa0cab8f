# Preload for a hot python: `site` imports this before the main script is opened. It waits
# for the job, writes the script, removes its own traces and lets python go on natively.


def _hot():
    import gc
    import os
    import sys
    import time

    # What python reads only while it starts: such a job gets a fresh interpreter instead.
    starts = ("PYTHON", "LC_", "LANG", "LD_", "GLIBC_", "MALLOC_")

    def fail(reason):
        os.write(2, b"hotcell: " + reason.encode() + b"\n")
        os._exit(70)

    def take(size):
        parts = []
        while size:
            part = os.read(0, size)
            if not part:
                fail("the job frame ends early")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def field(head=b""):
        while not head.endswith(b"\n"):
            head += take(1)
            if len(head) > 12:
                fail("bad job frame")
        if not head[:-1].isdigit():
            fail("bad job frame")
        return take(int(head))

    def count():
        number = field()
        if not number.isdigit():
            fail("bad job frame")
        return range(int(number))

    def write(path, content):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(fd, rest):]
        os.close(fd)

    def extra(base):
        name = field()
        content = field()
        if not name or name.startswith(b"/") or b".." in name.split(b"/"):
            fail("bad path in the job frame")
        path = os.path.join(base, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write(path, content)

    folder = os.path.dirname(__file__)
    # In a cell with slots this python is never given a job: it forks others that are.
    slots = os.environ.pop("HOTCELL_NEST", None)
    if slots is not None:
        modules, importers = set(sys.modules), set(sys.path_importer_cache)
        forks = {}
        with open(os.path.join(folder, "forks.py"), "rb") as source:
            exec(compile(source.read(), "forks", "exec"), forks)
        for name in set(sys.modules) - modules:
            del sys.modules[name]
        for name in set(sys.path_importer_cache) - importers:
            del sys.path_importer_cache[name]

    sys.path[:] = [entry for entry in sys.path if entry != folder]
    sys.path_importer_cache.pop(folder, None)
    rest = [entry for entry in os.environ["PYTHONPATH"].split(":") if entry != folder]
    if rest:
        os.environ["PYTHONPATH"] = ":".join(rest)
    else:
        del os.environ["PYTHONPATH"]

    # The host's own sitecustomize, if any. `site` takes an ImportError with this name to
    # mean "there is none", so whatever comes of it is simply raised again after the job.
    sys.modules.pop("sitecustomize", None)
    outcome = None
    try:
        import sitecustomize
    except BaseException as error:
        outcome = error

    # Keeps the collections of the finalisation away from everything made so far, except the
    # namespace of the script: its objects are finalised by a collection. A collection stops
    # tracking an empty dict, and what is not tracked is not frozen.
    namespace = sys.modules["__main__"].__dict__
    content = namespace.copy()
    namespace.clear()
    gc.collect()
    gc.freeze()
    namespace.update(content)
    # The error above may hold this frame, both frozen: what the frame names would live on, and with it the script's objects.
    del namespace, content
    if slots is not None:
        forks["serve"](slots)
    os.write(1, b"\x06")

    first = os.read(0, 1)
    if not first:
        os._exit(0)
    try:
        script = os.fsencode(sys.argv[0])
        code = field(first)
        args = [os.fsdecode(field()) for _ in count()]
        env = [field().partition(b"=") for _ in count()]
        write(script, code)
        for _ in count():
            extra(os.path.dirname(os.path.abspath(script)))
    except (OSError, ValueError) as error:
        fail(str(error))

    for name, _, value in env:
        os.environb[name] = value
    sys.argv += args
    sys.orig_argv += args
    if any(name == b"HOME" or name.decode("latin1").startswith(starts) for name, _, _ in env):
        os.execve(sys.executable, sys.orig_argv, os.environb)
    if any(name == b"TZ" for name, _, _ in env):
        time.tzset()
    if "gc" not in kept:
        del sys.modules["gc"]
    if outcome is not None:
        raise outcome.with_traceback(None)


# This namespace is frozen with a cycle in it, so it lives on and keeps these modules until
# python clears, at the end, all those that are left: else what hangs on them would stay.
kept = {name: module for name, module in __import__("sys").modules.items() if name != "__main__"}
_hot()
