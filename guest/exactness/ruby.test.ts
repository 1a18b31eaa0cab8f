import { rubyPrograms } from './corpus/ruby.ts';
import { exact, ruby } from './harness.ts';

exact('ruby', ruby, rubyPrograms);
