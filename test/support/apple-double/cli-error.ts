/** How a call ends that cannot be carried out. */
export class CliError extends Error {
  readonly exitCode: number;
  /** All that goes to stderr. */
  readonly text: string;

  constructor(exitCode: number, text: string) {
    super(text);
    this.name = 'CliError';
    this.exitCode = exitCode;
    this.text = text;
  }
}

/** Of the parser and of `validate`. */
export function usageError(command: string, message: string): CliError {
  const name = ['container', command].filter((word) => word !== '').join(' ');
  return new CliError(
    64,
    `Error: ${message}\nUsage: ${name} [<options>]\n  See '${name} --help' for more information.\n`,
  );
}

export function failure(message: string): CliError {
  return new CliError(1, `Error: ${message}\n`);
}

/** Of commands that take several ids: each error on a line of its own, with its code. */
export function aggregate(lines: readonly string[]): CliError {
  return new CliError(1, lines.map((line) => `Error: ${line}\n`).join(''));
}

const ENSURE = 'Ensure container system service has been started with `container system start`.';
const CONNECTION = 'interrupted: "XPC connection error: Connection invalid"';

/** What commands say when the services are down; some ask for something else first. */
export function servicesDown(doing: string | undefined): CliError {
  const first =
    doing === undefined ? CONNECTION : `internalError: "failed to ${doing}" (cause: "${CONNECTION}")`;
  return new CliError(1, `Error: ${first}\n${ENSURE}\n`);
}
