import { bunPrograms } from './corpus/bun.ts';
import { exact, typescript } from './harness.ts';

exact('bun', typescript, bunPrograms);
