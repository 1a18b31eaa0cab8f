import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { HotcellError, messageOf } from '../core/errors.ts';
import { FleetConfig } from './fleet-config.ts';
import { whyUnbounded } from './worker/agent-call.ts';

export interface ReadFleetConfig {
  readonly config: FleetConfig;
  /** Keys that mean nothing here, such as `workers.port_range`. */
  readonly unknown: readonly string[];
}

/** `.mahabharatha/config.yaml`; without the file everything is as by default. `drivers` are those that may be named in it. */
export async function readFleetConfig(path: string, drivers: readonly string[]): Promise<ReadFleetConfig> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw invalid(path, messageOf(error));
  });
  return parseFleetConfig(path, text, drivers);
}

export function parseFleetConfig(path: string, text: string, drivers: readonly string[]): ReadFleetConfig {
  const content = parseYaml(path, text);
  const parsed = FleetConfig.safeParse(content ?? {});
  if (!parsed.success) {
    const problems = parsed.error.issues.map(
      (issue) => `${issue.path.join('.') || 'the file'}: ${issue.message}`,
    );
    throw invalid(path, problems.join('\n'), parsed.error.issues[0]?.path.join('.'));
  }
  const { driver } = parsed.data.workers;
  if (!drivers.includes(driver))
    throw invalid(path, `workers.driver: must be one of ${drivers.join(', ')}`, 'workers.driver');
  const unbounded = whyUnbounded(parsed.data.agent);
  if (unbounded !== undefined) throw invalid(path, unbounded, 'agent');
  return { config: parsed.data, unknown: findUnknown(content, FleetConfig.shape) };
}

function parseYaml(path: string, text: string): unknown {
  try {
    return parse(text, { prettyErrors: false }) as unknown;
  } catch (error) {
    throw invalid(path, messageOf(error));
  }
}

interface Shaped {
  readonly [key: string]: unknown;
}

/** Keys of the file that the schema does not have, two levels deep. */
function findUnknown(content: unknown, shape: Shaped): string[] {
  if (!isMapping(content)) return [];
  return Object.entries(content).flatMap(([key, value]) => {
    const known = shape[key];
    if (known === undefined) return [key];
    const inner = shapeOf(known);
    return inner === undefined || !isMapping(value)
      ? []
      : Object.keys(value)
          .filter((name) => !(name in inner))
          .map((name) => `${key}.${name}`);
  });
}

/** Of `looseObject(…).prefault({})`. */
function shapeOf(schema: unknown): Shaped | undefined {
  if (!isMapping(schema)) return undefined;
  if (isMapping(schema['shape'])) return schema['shape'];
  const definition = schema['def'];
  return isMapping(definition) ? shapeOf(definition['innerType']) : undefined;
}

function isMapping(value: unknown): value is Shaped {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalid(path: string, problem: string, field?: string): HotcellError {
  return new HotcellError('CONFIG_INVALID', `${path}: ${problem}`, {
    hint: 'Correct the named key; hotcell fleet init --help and docs/fleet.md list all of them.',
    ...(field === undefined ? {} : { field }),
  });
}
