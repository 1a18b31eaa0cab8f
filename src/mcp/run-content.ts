import type { ContentBlock } from '@modelcontextprotocol/server';
import type { RunReply } from '../wire/run-code.ts';
import type { FsReply } from '../wire/session-files.ts';
import type { Workbench } from '../workbench/api.ts';
import { fileUri, runUri } from './run-uris.ts';

const MOST_IMAGES = 4;
const MOST_IMAGE_BYTES = 1024 * 1024;
const MOST_LINKS = 50;

/** `begins` in hexadecimal digits. */
const IMAGES: readonly { readonly type: string; readonly ending: RegExp; readonly begins: RegExp }[] = [
  { type: 'image/png', ending: /\.png$/i, begins: /^89504e470d0a1a0a/ },
  { type: 'image/jpeg', ending: /\.jpe?g$/i, begins: /^ffd8ff/ },
  { type: 'image/gif', ending: /\.gif$/i, begins: /^47494638/ },
  { type: 'image/webp', ending: /\.webp$/i, begins: /^52494646.{8}57454250/ },
];
const SVG = { type: 'image/svg+xml', ending: /\.svg$/i };

interface Options {
  /** Whether the session goes on, so that there is something to link to. */
  readonly linked: boolean;
}

/** What stands beside the text of a result: small images, and links to everything else. */
export async function toRunContent(
  reply: RunReply,
  workbench: Workbench,
  { linked }: Options,
): Promise<ContentBlock[]> {
  const blocks: ContentBlock[] = linked ? linksToOutput(reply) : [];
  let images = 0;
  for (const { path, sizeBytes } of reply.filesChanged.slice(0, MOST_LINKS)) {
    const isShown = images < MOST_IMAGES && sizeBytes <= MOST_IMAGE_BYTES && looksLikeImage(path);
    // oxlint-disable-next-line no-await-in-loop -- one at a time: together they could be large
    const image = isShown ? await readImage(workbench, path) : undefined;
    if (image !== undefined) {
      images += 1;
      blocks.push(image);
    }
    if (linked)
      blocks.push({
        type: 'resource_link',
        uri: fileUri(workbench.id, path),
        name: path,
        size: sizeBytes,
      });
  }
  return blocks;
}

function linksToOutput(reply: RunReply): ContentBlock[] {
  return (['stdout', 'stderr'] as const)
    .filter((stream) => reply[`${stream}CutBytes`] > 0)
    .map((stream) => ({
      type: 'resource_link',
      uri: runUri(reply.run_id, stream),
      name: `${stream} of ${reply.run_id}`,
      mimeType: 'text/plain',
      description: `${reply[`${stream}Bytes`]} bytes`,
    }));
}

function looksLikeImage(path: string): boolean {
  return [...IMAGES, SVG].some(({ ending }) => ending.test(path));
}

/** SECURITY: a name proves nothing, and a client may choke on an image that is none; then there is only a link. */
async function readImage(workbench: Workbench, path: string): Promise<ContentBlock | undefined> {
  let file: FsReply;
  try {
    file = await workbench.files.read(path);
  } catch {
    return undefined;
  }
  if (file.kind !== 'file' || file.size > MOST_IMAGE_BYTES) return undefined;
  if (SVG.ending.test(path)) return toSvg(workbench, file);
  const bytes = Buffer.from(file.content, file.encoding);
  const kind = IMAGES.find(({ ending }) => ending.test(path));
  if (kind === undefined || !kind.begins.test(bytes.toString('hex', 0, 16))) return undefined;
  return { type: 'image', data: bytes.toString('base64'), mimeType: kind.type };
}

function toSvg(workbench: Workbench, file: FsReply & { readonly kind: 'file' }): ContentBlock | undefined {
  if (file.encoding !== 'utf8' || !file.content.includes('<svg')) return undefined;
  const uri = fileUri(workbench.id, file.path);
  return { type: 'resource', resource: { uri, mimeType: SVG.type, text: file.content } };
}
