import { constants } from 'node:fs';
import { open, readdir, realpath } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { HotcellError, messageOf } from '../../core/errors.ts';
import { fleetPaths } from '../names.ts';
import { graphError, validateGraph, type ValidGraph } from './validate-graph.ts';

export const GRAPH_FILE = 'task-graph.json';

const MOST_BYTES = 16 * 1024 ** 2;
const DEEPEST_FOLDER = 5;
const MOST_FOLDERS = 1000;

export interface ReadGraph extends ValidGraph {
  /** Absolute. */
  readonly path: string;
}

/**
 * The task graph of a feature: the named file, or the first of the usual places that has one.
 * @param named relative to the root, if not absolute
 */
export async function readGraph(root: string, feature: string, named?: string): Promise<ReadGraph> {
  const found =
    named === undefined ? await findGraph(root, feature) : await readIfThere(resolve(root, named));
  if (found === undefined) throw notFound(root, feature, named);
  const { path, text } = found;
  const name = relative(root, path).startsWith('..') ? path : relative(root, path);
  return { path, ...validateGraph(parseGraph(text, name), name, feature) };
}

function parseGraph(text: string, name: string): unknown {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, '')) as unknown;
  } catch (error) {
    throw graphError(`${name}: is not JSON: ${messageOf(error)}`, error);
  }
}

interface GraphText {
  readonly path: string;
  readonly text: string;
}

async function findGraph(root: string, feature: string): Promise<GraphText | undefined> {
  const { specs } = fleetPaths(root, feature);
  const gsd = join(root, '.gsd');
  const usual = [
    join(specs, GRAPH_FILE),
    join(gsd, 'tasks', feature, GRAPH_FILE),
    join(gsd, 'tasks', `${feature}.json`),
    join(gsd, 'tasks', GRAPH_FILE),
    join(root, GRAPH_FILE),
  ];
  for (const path of usual) {
    const found = await readInside(root, path);
    if (found !== undefined) return found;
  }
  return findAnywhere(root, gsd, feature);
}

/** One that says it is for this feature; otherwise the only one there is. */
async function findAnywhere(root: string, gsd: string, feature: string): Promise<GraphText | undefined> {
  const read = await Promise.all((await listGraphs(gsd)).map((path) => readInside(root, path)));
  const found = read.filter((graph) => graph !== undefined);
  const [own, ...others] = found.filter(({ text }) => isFor(text, feature));
  if (own !== undefined && others.length === 0) return own;
  if (own === undefined && found.length <= 1) return found[0];
  const names = found.map(({ path }) => relative(root, path)).join(', ');
  throw new HotcellError('INVALID_REQUEST', `which task graph is for ${feature}? There are ${names}`, {
    hint: 'Name it: --task-graph FILE',
  });
}

function isFor(text: string, feature: string): boolean {
  try {
    const content = parseGraph(text, '');
    return (
      typeof content === 'object' && content !== null && 'feature' in content && content.feature === feature
    );
  } catch {
    return false;
  }
}

/** A search that ends: no links, not deep, not many folders. */
async function listGraphs(gsd: string): Promise<string[]> {
  const found: string[] = [];
  const folders = [{ path: gsd, depth: 0 }];
  for (let index = 0; index < folders.length && index < MOST_FOLDERS; index++) {
    const { path = gsd, depth = 0 } = folders[index] ?? {};
    const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
    for (const entry of entries.toSorted((left, right) => (left.name < right.name ? -1 : 1))) {
      const inner = join(path, entry.name);
      if (entry.isFile() && entry.name === GRAPH_FILE) found.push(inner);
      if (entry.isDirectory() && depth < DEEPEST_FOLDER) folders.push({ path: inner, depth: depth + 1 });
    }
  }
  return found;
}

/** SECURITY: a repository may bring links along; what we find by ourselves is a file at its own place, or nothing. */
async function readInside(root: string, path: string): Promise<GraphText | undefined> {
  const real = await realpath(path).catch(() => undefined);
  if (real === undefined || real !== join(await realpath(root), relative(root, path))) return undefined;
  return readIfThere(path);
}

async function readIfThere(path: string): Promise<GraphText | undefined> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = await file.stat();
    if (!stat.isFile()) throw new Error('it is not a file');
    if (stat.size > MOST_BYTES) throw new Error(`it has more than ${MOST_BYTES / 1024 ** 2} MB`);
    return { path, text: await file.readFile('utf8') };
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw graphError(`${path}: cannot be read: ${messageOf(error)}`, error);
  }
}

function notFound(root: string, feature: string, named: string | undefined): HotcellError {
  const message =
    named === undefined
      ? `there is no task graph for ${feature} in ${root}`
      : `there is no file ${resolve(root, named)}`;
  return new HotcellError('INVALID_REQUEST', message, {
    hint: `Make one (hotcell fleet design --feature ${feature}), put it at .gsd/specs/${feature}/${GRAPH_FILE}, or name it: --task-graph FILE`,
  });
}
