import { HotcellError } from '../../core/errors.ts';
import { toPlainWords } from '../images/image-problem.ts';

/** The CLI was there and said no. */
export class CliRefusal extends Error {
  readonly code: number;
  readonly words: string;

  constructor(what: string, code: number, stderr: string) {
    super(`container did not ${what}: ${toPlainWords(stderr) || `exit code ${code}`}`);
    this.name = 'CliRefusal';
    this.code = code;
    this.words = toPlainWords(stderr);
  }
}

/** Up to 0.9 errors began with a code; these parts have been the same ever since. */
const SERVICES_DOWN = /XPC connection error|`container system start`/;
const NOT_FOUND = /\bnot found\b/;
const EXISTS = /already exists/;
const DISK_FULL = /no space left on device|disk quota exceeded|not enough space/i;
const NO_AGENT = /failed to find target executable "?perl/;

export const START_SERVICES = 'container system start';

export const isServicesDown = (words: string): boolean => SERVICES_DOWN.test(words);

export function isNotFound(error: unknown): boolean {
  return error instanceof CliRefusal && NOT_FOUND.test(error.words);
}

/** Somebody else's container has the name: it is not ours to remove. */
export const isNameTaken = (words: string): boolean => EXISTS.test(words);

export function toServicesDown(words: string): HotcellError {
  return new HotcellError(
    'DRIVER_UNAVAILABLE',
    `the services of container do not run: ${toPlainWords(words)}`,
    {
      hint: `Start them: ${START_SERVICES}`,
      cause: new Error(words),
    },
  );
}

/** What a call that ended with an error means for whoever made it. */
export function toCallError(what: string, code: number, stderr: string): Error {
  return isServicesDown(stderr) ? toServicesDown(stderr) : new CliRefusal(what, code, stderr);
}

/** Why a cell did not start, from the last words of the call that should have been it. */
export function toStartError(cell: string, image: string, stderr: string): HotcellError {
  const words = toPlainWords(stderr);
  if (isServicesDown(words)) return toServicesDown(words);
  if (DISK_FULL.test(words)) {
    return new HotcellError('DRIVER_UNAVAILABLE', `cell ${cell} did not start: the disk is full: ${words}`, {
      hint: 'Make room: container system df, then container image prune',
    });
  }
  if (NO_AGENT.test(words)) {
    return new HotcellError(
      'CELL_START_FAILED',
      `image ${image} has no perl, which the agent of a cell needs`,
      {
        hint: 'Use an image made from Debian, or one of ours: hotcell build',
      },
    );
  }
  return new HotcellError('CELL_START_FAILED', `cell ${cell} did not start: ${words}`);
}
