import { bashPrograms } from './corpus/bash.ts';
import { bash, exact } from './harness.ts';

exact('bash', bash, bashPrograms);
