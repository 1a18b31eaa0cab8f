import { nodePrograms } from './corpus/node.ts';
import { exact, javascript } from './harness.ts';

exact('node', javascript, nodePrograms);
