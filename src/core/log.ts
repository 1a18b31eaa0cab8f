/** Structured logging as a dependency. SECURITY: never pass values of environment variables or code of users. */
export interface Log {
  debug(fields: Record<string, unknown>, message: string): void;
  info(fields: Record<string, unknown>, message: string): void;
  warn(fields: Record<string, unknown>, message: string): void;
  error(fields: Record<string, unknown>, message: string): void;
}

export const SILENT_LOG: Log = { debug() {}, info() {}, warn() {}, error() {} };
