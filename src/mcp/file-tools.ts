import type { ContentBlock } from '@modelcontextprotocol/server';
import { HotcellError } from '../core/errors.ts';
import {
  FileView,
  FolderView,
  ListFilesArguments,
  ReadFileArguments,
  WriteFileArguments,
  WrittenView,
} from '../wire/run-code.ts';
import { fileUri } from './run-uris.ts';
import { READS, REPLACES, addTool, inBoth, type Served } from './tool.ts';

const FOLDER = 'in the work folder of a session, which is the current folder of its runs';

export function addFileTools(served: Served): void {
  addReadTools(served);
  const { desk } = served;
  addTool(served, {
    name: 'write_file',
    title: 'Write a file',
    description: `Writes a file ${FOLDER}; one of the same name is replaced. It is gone with the session.`,
    input: WriteFileArguments,
    output: WrittenView,
    annotations: REPLACES,
    act: async ({ path, content, encoding, session_id: id }) => {
      const workbench = await desk.find(id);
      const bytes = Buffer.from(content, encoding);
      await workbench.files.write([{ path, content: bytes }]);
      return inBoth({ session_id: workbench.id, path, sizeBytes: bytes.length });
    },
  });
}

function addReadTools(served: Served): void {
  const { desk } = served;
  addTool(served, {
    name: 'read_file',
    title: 'Read a file',
    description: `Reads a file ${FOLDER}. What is not UTF-8 comes as base64.`,
    input: ReadFileArguments,
    output: FileView,
    annotations: READS,
    act: async ({ path, session_id: id }) => {
      const workbench = await desk.find(id);
      const found = await workbench.files.read(path);
      if (found.kind !== 'file') {
        throw new HotcellError('FILE_REFUSED', `${path} is a folder`, { hint: 'list_files shows folders.' });
      }
      const { content, encoding, size: sizeBytes } = found;
      const link: ContentBlock = { type: 'resource_link', uri: fileUri(workbench.id, path), name: path };
      return {
        structured: { session_id: workbench.id, path, content, encoding, sizeBytes },
        text: `session_id: ${workbench.id}\npath: ${path} (${sizeBytes} bytes, ${encoding})\n${content}`,
        content: [link],
      };
    },
  });
  addTool(served, {
    name: 'list_files',
    title: 'List files',
    description: `Lists a folder ${FOLDER}.`,
    input: ListFilesArguments,
    output: FolderView,
    annotations: READS,
    act: async ({ path, session_id: id }) => {
      const workbench = await desk.find(id);
      const found = await workbench.files.read(path);
      const entries =
        found.kind === 'folder'
          ? found.entries.map(({ name, kind, size }) => ({ name, kind, sizeBytes: size }))
          : [{ name: path, kind: 'file', sizeBytes: found.size }];
      return inBoth({ session_id: workbench.id, path, entries });
    },
  });
}
