/** What commands of the fleet read of the environment. Git of the host takes of `variables` what it needs. */
export function readFleetEnvironment(): {
  readonly feature: string | undefined;
  readonly variables: Readonly<Record<string, string | undefined>>;
} {
  return { feature: process.env['MAHABHARATHA_FEATURE'], variables: process.env };
}
