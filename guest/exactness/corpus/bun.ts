import { type Corpus, withEnv, withInput } from './program.ts';
import { scripts } from './scripts.ts';

export const bunPrograms: Corpus = {
  ...scripts,
  types:
    'interface A { x: number }\nenum E { One = 1, Two }\nconst a: A = { x: E.Two }\nconsole.log(a satisfies A, E[1])\n',
  main: 'console.log(import.meta.main, import.meta.path, Bun.main, Bun.argv.length, import.meta.dir)\n',
  registry: 'console.log(Object.keys(require.cache), process.execArgv)\n',
  'environment through Bun': withEnv('console.log(Object.entries(Bun.env).sort(), import.meta.env.FOO)\n'),
  'standard input through Bun': withInput('console.log(JSON.stringify(await Bun.stdin.text()))\n'),
  'lines of the console': withInput('for await (const line of console) console.log("line", line)\n'),
  jsx: {
    code: 'import { x } from "./part"\nconsole.log(x)\n',
    files: { 'part.tsx': 'export const x: string = "tsx"\n' },
  },
  shell: 'import { $ } from "bun"\nawait $`echo shell $FOO`.env({ FOO: "1" })\n',
};
