import { type Corpus, withArgs, withEnv, withInput } from './program.ts';

export const ends = {
  'del at exit':
    'class A:\n    def __init__(self, n): self.n = n\n    def __del__(self): print("del", self.n, A)\na = A("module")\nb = A("cycle"); b.me = b\n[A("dropped")]\n',
  'del that raises':
    'class D:\n    def __repr__(self): return "D"\n    def __call__(self): raise ValueError("in del")\nclass A: __del__ = D()\na = A()\n',
  'del of what hangs on other modules':
    'import sys, os, io, builtins, json\nclass A:\n    def __init__(self, n): self.n = n\n    def __del__(self): print("del", self.n)\nfor m in sys, os, io, builtins, json: m.hanging = A(m.__name__)\nos._Environ.x = A("class"); os.walk.x = A("function"); os.environ.x = A("object")\n',
};

export const pythonPrograms: Corpus = {
  empty: '',
  'no final newline': 'print(1)',
  crlf: 'print(1)\r\nif True:\r\n  print("""a\r\nb""".encode())\r\n',
  bom: '\ufeffprint("bom")\n',
  shebang: '#!/usr/bin/env python3\nprint(__doc__)\nraise SystemExit(4)\n',
  'utf-8': 'größe = "日本 🎉"\nprint(größe, ascii(größe))\n',
  'magic encoding': '# -*- coding: latin-1 -*-\nprint(ascii("é"))\n',
  'bad magic encoding': '# -*- coding: nonsense -*-\nprint(1)\n',
  'nested traceback':
    'def f(n):\n    if n: f(n - 1)\n    else: [][1]\ntry:\n    f(2)\nexcept IndexError as e:\n    raise ValueError("outer") from e\n',
  'context traceback': 'try:\n    {}["k"]\nexcept KeyError:\n    undefined_name\n',
  'exception group': 'raise ExceptionGroup("g", [ValueError(1), TypeError("t")])\n',
  'syntax error': 'print("before")\nfor x in\n    pass\n',
  'indentation error': 'if True:\nprint(1)\n',
  recursion: 'def f(): f()\nf()\n',
  names:
    'import sys\nprint(__name__, __file__, sys.argv, sys.orig_argv[1:], __spec__, __package__, __builtins__, __loader__.__class__)\n',
  args: withArgs('import sys\nprint(sys.argv[1:])\n'),
  globals: 'print(list(globals()))\n',
  stack:
    'import traceback, sys, inspect\nprint(traceback.format_stack(), len(inspect.stack()), sys._getframe().f_back)\n',
  'modules and path':
    'import sys\nprint(list(sys.modules), sys.path, sys.path_importer_cache.keys(), len(sys.meta_path), len(sys.path_hooks))\n',
  'flags and streams':
    'import sys\nprint(sys.flags, sys.warnoptions, sys._xoptions, sys.executable, sys.stdin, sys.stdout, sys.stderr, sys.stdin.line_buffering, sys.getfilesystemencoding())\n',
  site: 'import site, sysconfig, sys\nprint(site.ENABLE_USER_SITE, site.USER_BASE, site.PREFIXES, sysconfig.get_paths(), sys.prefix)\n',
  environment: withEnv(
    'import os, posix, time\nprint(sorted(os.environ.items()), sorted(posix.environ.items()), time.localtime(0).tm_hour)\nos.system("env | sort")\n',
  ),
  'environment read at the start': {
    code: 'import os, sys\nprint(sys.path, sys.stdout.encoding, sys.argv, sorted(os.environ.items()))\nprint(sys.stdin.read())',
    args: ['x'],
    env: { PYTHONPATH: '/nowhere', LC_ALL: 'C', PYTHONIOENCODING: 'latin-1' },
    stdin: 'rest',
  },
  sibling: {
    code: 'import sibling, pkg.deep.mod as m\nprint(sibling.x, m.y, open("data.bin", "rb").read())\nsibling.fail()\n',
    files: {
      'sibling.py': 'x = 1\ndef fail():\n    raise OSError("in sibling")\n',
      'pkg/deep/mod.py': 'y = __name__, __file__\n',
      'data.bin': Uint8Array.of(0, 10, 255, 0),
    },
  },
  stdin: withInput('import sys\nprint(repr(input()))\nprint(repr(sys.stdin.read()))\n'),
  'stdin through a child': withInput('import subprocess\nsubprocess.run(["cat"])\n'),
  'stdin not read': withInput('print("no")\n'),
  'input at the end': 'input("? ")\n',
  atexit:
    'import atexit, sys\natexit.register(print, "bye")\nclass F:\n    def __repr__(self): return "F"\n    def __call__(self): print(sys.exc_info()); 1/0\natexit.register(F())\nraise KeyError("pending")\n',
  ...ends,
  'weakref and cycles':
    'import gc, weakref\nclass A: pass\na = A(); a.a = a\nweakref.finalize(a, print, "finalized")\ndel a\nprint(gc.isenabled(), gc.get_threshold(), gc.collect() > 0)\n',
  'unclosed file':
    'f = open("out.txt", "w")\nf.write("x" * 10)\nimport atexit, os\natexit.register(lambda: print(os.path.getsize("out.txt")))\n',
  'unflushed wrapper': 'import os, io\nf = open(os.dup(1), "w")\nf.write("flushed at exit\\n")\n',
  'exit 3': 'import sys\nsys.exit(3)\n',
  'exit 256': 'import sys\nsys.exit(256)\n',
  'exit 300': 'import sys\nsys.exit(300)\n',
  'exit -1': 'import sys\nsys.exit(-1)\n',
  'exit text': 'import sys\nsys.exit("a message ü")\n',
  'exit none': 'import sys\nprint("x", end="")\nsys.exit()\n',
  'exit builtin': 'exit(5)\n',
  _exit: 'import os\nprint("x")\nos._exit(7)\n',
  'kill TERM': 'import os, signal\nprint("x")\nos.kill(os.getpid(), signal.SIGTERM)\n',
  'kill KILL': 'import os, signal\nprint("x")\nos.kill(os.getpid(), signal.SIGKILL)\n',
  'kill SEGV': 'import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n',
  'kill INT': 'import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(5)\n',
  'signal handlers':
    'import signal\nprint([(s.name, str(signal.getsignal(s))) for s in sorted(signal.valid_signals())  if isinstance(s, signal.Signals)])\n',
  abort: 'import os\nprint("x")\nos.abort()\n',
  'threads at exit':
    'import threading, time\ndef f():\n    time.sleep(0.1); print("thread")\nthreading.Thread(target=f).start()\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nprint("main")\n',
  'thread that raises':
    'import threading\ndef f(): 1/0\nt = threading.Thread(target=f, name="T"); t.start(); t.join()\n',
  multiprocessing:
    'import multiprocessing as m\ndef f(x): return x * x\nif __name__ == "__main__":\n    with m.get_context("spawn").Pool(1) as p: print(p.map(f, [1, 2]))\n',
  asyncio:
    'import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    raise RuntimeError("async")\nasyncio.run(f())\n',
  'warning and excepthook':
    'import sys, warnings\nwarnings.warn("careful")\nprint(sys.excepthook is sys.__excepthook__)\n',
  'stderr text': 'import sys\nprint("ä", file=sys.stderr)\nsys.stdout.buffer.write(b"\\xff\\x00")\n',
  'own source':
    'import inspect, sys\ndef f(): return 1\nprint(inspect.getsource(f), open(__file__).read(), oct(__import__("os").stat(__file__).st_mode))\n',
  'open descriptors':
    'import os\nprint(sorted(os.listdir("/proc/self/fd")), os.getcwd(), oct(os.umask(0)))\n',
  'large code': `${Array.from({ length: 2500 }, (_, i) => `value_${i} = ${i} * 2  # filler ä`).join('\n')}\nprint(value_2499)\nvalue_0()\n`,
};
