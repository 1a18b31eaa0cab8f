# A python that has booted and forks runs: the slots of an outer cell, each of which makes one run after the other (see
# guest/lib/Nest/Slot.pm, which does the same for what is executed). `sitecustomize` reads this as text, because a module
# would have to be forgotten again everywhere. Only `serve` is called, and it returns in the program of a run.
import ctypes
import os

SIGCHLD = 17
DEFAULT, IGNORED = 0, 1
FAILED = 71

libc = ctypes.PyDLL(None, use_errno=True)


class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("program", ctypes.c_char_p)]


def to_word(word):
    kind, value = word[:1], word[1:]
    if kind == b"n":
        return ctypes.c_ulong(int(value))
    if kind == b"h":
        return ctypes.create_string_buffer(bytes.fromhex(value.decode()))
    if kind == b"f":
        program = bytes.fromhex(value.decode())
        return Filter(len(program) // 8, program)
    if kind == b"r":
        return lambda facts: ctypes.c_ulong(facts[value])
    if kind == b"t":
        if b"{id}" in value or b"{host}" in value:
            return lambda facts: value.replace(b"{id}", b"%d" % facts[b"id"]).replace(b"{host}", facts[b"host"])
        return value
    raise ValueError("a word of an unknown type")


def read_plan(text):
    words = iter(text.split(b"\0"))
    plan = {"clone": int(next(words)), "flags": int(next(words)), "workdir": next(words)}
    for part in ("first", "program", "keeper"):
        plan[part] = []
        for _ in range(int(next(words))):
            kind, label, count = next(words), next(words), int(next(words))
            plan[part].append((kind, label, [to_word(next(words)) for _ in range(count)]))
    return plan


def fill(word, facts):
    if callable(word):
        return word(facts)
    return ctypes.byref(word) if isinstance(word, Filter) else word


def lay(steps, facts):
    for kind, label, words in steps:
        try:
            words = [fill(word, facts) for word in words]
            if kind == b"write":
                fd = os.open(words[0], os.O_WRONLY)
                os.write(fd, words[1])
                os.close(fd)
                continue
            facts[label] = result = libc.syscall(*words)
            if result == -1:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        except OSError as error:
            raise OSError("%s: %s" % (label.decode(), error.strerror)) from None


def take(fd, size):
    parts = []
    while size:
        part = os.read(fd, size)
        if not part:
            os._exit(0)
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def read_order(orders):
    length = b""
    while not length.endswith(b"\n"):
        length += take(orders, 1)
    return take(orders, int(length)).split(b"\0")


def report(paths):
    for path in paths:
        try:
            with open(path, "rb", buffering=0) as file:
                text = b"".join(iter(lambda: file.read(65536), b""))
        except OSError as error:
            text = b"error: " + error.strerror.encode()
        said = b"%s\n%d\n%s" % (path, len(text), text)
        while said:
            said = said[os.write(1, said):]
    os._exit(0)


def become_program(plan, order, ends, facts):
    for number, end in enumerate(ends[:3]):
        os.dup2(end, number)
    libc.signal(SIGCHLD, ctypes.c_void_p(DEFAULT))
    lay(plan["program"], facts)
    os.chdir(plan["workdir"])
    os.umask(0o022)
    os.closerange(3, 65536)
    if order[7] == b"report":
        report(order[10:10 + int(order[9])])


# PID 1 of a run; returns in its program.
def keep_run(plan, order, ends):
    facts = {b"id": int(order[5]), b"host": order[6], b"hostlen": len(order[6])}
    try:
        libc.signal(SIGCHLD, ctypes.c_void_p(DEFAULT))
        lay(plan["first"], facts)
        program = os.fork()
        if not program:
            become_program(plan, order, ends, facts)
            return
        for end in ends[:3]:
            os.close(end)
        lay(plan["keeper"], facts)
        while True:
            pid, status = os.wait()
            if pid == program:
                break
        os.write(ends[3], b"E%d" % status)
        os._exit(0)
    except BaseException as error:
        os.write(ends[3], b"F" + str(error).encode())
        os._exit(FAILED)


# One slot: never sees a job, an output or an end. Returns in the program of a run.
def serve_slot(plan, orders, answers):
    libc.signal(SIGCHLD, ctypes.c_void_p(IGNORED))
    os.write(answers, b"%d\n" % os.getpid())
    while True:
        order = read_order(orders)
        modes = (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY, os.O_WRONLY)
        try:
            ends = [os.open(b"/proc/%s/fd/%s" % (order[0], end), mode) for end, mode in zip(order[1:5], modes)]
        except OSError as error:
            os.write(answers, b"0 %s\n" % error.strerror.encode())
            continue
        pid = libc.syscall(*[ctypes.c_ulong(word) for word in (plan["clone"], plan["flags"] | SIGCHLD, 0, 0, 0, 0)])
        if pid == 0:
            os.close(orders)
            os.close(answers)
            keep_run(plan, order, ends)
            return
        for end in ends:
            os.close(end)
        os.write(answers, b"%d\n" % pid if pid > 0 else b"0 " + os.strerror(ctypes.get_errno()).encode() + b"\n")


def serve(words):
    plan_end, *pairs = words.split()
    plan_end = int(plan_end)
    plan = read_plan(b"".join(iter(lambda: os.read(plan_end, 65536), b"")))
    os.close(plan_end)
    pairs = [tuple(map(int, pair.split(","))) for pair in pairs]
    for slot in pairs:
        if not os.fork():
            for other in pairs:
                if other != slot:
                    os.close(other[0])
                    os.close(other[1])
            return serve_slot(plan, *slot)
    os._exit(0)
