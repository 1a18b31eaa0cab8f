import { ends, pythonPrograms } from './corpus/python.ts';
import { exact, python, pythonWithoutSite } from './harness.ts';

exact('python', python, pythonPrograms);

exact('python without sitecustomize', pythonWithoutSite, ends);
