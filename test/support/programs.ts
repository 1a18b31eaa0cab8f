/** The same small programs in every built-in language. */
export interface Programs {
  readonly language: string;
  readonly extension: string;
  /** Writes `out` and `err` and a line break to the stream of that name. */
  readonly bothStreams: string;
  readonly syntaxError: string;
  /** Fails in line 3. */
  readonly failsInLine3: string;
  readonly exit7: string;
  /** Ends itself with SIGKILL. */
  readonly killsItself: string;
  /** Prints stdin, the arguments with | between, $GREETING, data/deep/text.txt, and raw.bin in hexadecimal. */
  readonly showsInputs: string;
  /** Says `started`, then never ends. */
  readonly loops: string;
}

export const PROGRAMS: readonly Programs[] = [
  {
    language: 'python',
    extension: 'py',
    bothStreams: "import sys\nprint('out')\nprint('err', file=sys.stderr)",
    syntaxError: 'def (',
    failsInLine3: "x = 1\n\nraise ValueError('boom')",
    exit7: 'import sys\nsys.exit(7)',
    killsItself: 'import os\nos.kill(os.getpid(), 9)',
    showsInputs: [
      'import os, sys',
      'print(sys.stdin.read())',
      "print('|'.join(sys.argv[1:]))",
      "print(os.environ['GREETING'])",
      "print(open('data/deep/text.txt').read())",
      "print(open('raw.bin', 'rb').read().hex())",
    ].join('\n'),
    loops: "print('started', flush=True)\nwhile True: pass",
  },
  {
    language: 'ruby',
    extension: 'rb',
    bothStreams: "puts 'out'\n$stderr.puts 'err'",
    syntaxError: 'def (',
    failsInLine3: "x = 1\n\nraise 'boom'",
    exit7: 'exit 7',
    killsItself: "Process.kill('KILL', $$)",
    showsInputs: [
      'puts STDIN.read',
      "puts ARGV.join('|')",
      "puts ENV['GREETING']",
      "puts File.read('data/deep/text.txt')",
      "puts File.binread('raw.bin').unpack1('H*')",
    ].join('\n'),
    loops: "puts 'started'\nloop {}",
  },
  {
    language: 'javascript',
    extension: 'js',
    bothStreams: "console.log('out'); console.error('err');",
    syntaxError: 'function (',
    failsInLine3: "const x = 1;\n\nthrow new Error('boom');",
    exit7: 'process.exit(7)',
    killsItself: "process.kill(process.pid, 'SIGKILL'); setTimeout(() => {}, 5000);",
    showsInputs: `const fs = require('fs');
console.log(fs.readFileSync(0, 'utf8'));
console.log(process.argv.slice(2).join('|'));
console.log(process.env.GREETING);
console.log(fs.readFileSync('data/deep/text.txt', 'utf8'));
console.log(fs.readFileSync('raw.bin').toString('hex'));`,
    loops: "require('fs').writeSync(1, 'started\\n'); for (;;);",
  },
  {
    language: 'typescript',
    extension: 'ts',
    bothStreams: "const word: string = 'out'; console.log(word); console.error('err');",
    syntaxError: 'const = ;',
    failsInLine3: "const x: number = 1;\n\nthrow new Error('boom');",
    exit7: 'process.exit(7)',
    killsItself: "process.kill(process.pid, 'SIGKILL'); setTimeout(() => {}, 5000);",
    showsInputs: `import fs from 'node:fs';
console.log(fs.readFileSync(0, 'utf8'));
console.log(process.argv.slice(2).join('|'));
console.log(process.env.GREETING);
console.log(fs.readFileSync('data/deep/text.txt', 'utf8'));
console.log(fs.readFileSync('raw.bin').toString('hex'));`,
    loops: "import fs from 'node:fs'; fs.writeSync(1, 'started\\n'); for (;;);",
  },
  {
    language: 'bash',
    extension: 'sh',
    bothStreams: 'echo out; echo err >&2',
    syntaxError: 'if then',
    failsInLine3: 'set -e\n\nno-such-command',
    exit7: 'exit 7',
    killsItself: 'kill -9 $$',
    showsInputs: `cat; echo
(IFS='|'; echo "$*")
echo "$GREETING"
cat data/deep/text.txt; echo
od -An -v -tx1 raw.bin | tr -d ' \\n'; echo`,
    loops: 'echo started; while :; do :; done',
  },
];
