import { NoArguments } from '../wire/run-code.ts';
import {
  OfSnippetArguments,
  RemovedSnippetView,
  SaveSnippetArguments,
  SnippetCodeView,
  SnippetView,
  SnippetsView,
} from '../wire/snippets.ts';
import { READS, REPLACES, addTool, inBoth, type Served } from './tool.ts';

export function addSnippetTools(served: Served): void {
  const { desk } = served;
  addTool(served, {
    name: 'save_snippet',
    title: 'Save a snippet',
    description:
      'Keeps a TypeScript module under a name, also beyond the session. Code of run_code that names it in snippets can ' +
      'import it as "snippets/<name>". One of the same name is replaced.',
    input: SaveSnippetArguments,
    output: SnippetView,
    annotations: REPLACES,
    act: async (given) => {
      const { snippets } = await desk.workbenches();
      const { name, description } = await snippets.save(desk.owner, given);
      return inBoth({ name, description });
    },
  });
  addTool(served, {
    name: 'delete_snippet',
    title: 'Delete a snippet',
    description: 'Removes a saved snippet for good.',
    input: OfSnippetArguments,
    output: RemovedSnippetView,
    annotations: REPLACES,
    act: async ({ name }) => {
      const { snippets } = await desk.workbenches();
      await snippets.remove(desk.owner, name);
      return inBoth({ name, deleted: true as const });
    },
  });
  addReadingTools(served);
}

function addReadingTools(served: Served): void {
  const { desk } = served;
  addTool(served, {
    name: 'list_snippets',
    title: 'List snippets',
    description: 'The saved snippets and what they do.',
    input: NoArguments,
    output: SnippetsView,
    annotations: READS,
    act: async () => {
      const { snippets } = await desk.workbenches();
      const found = await snippets.list(desk.owner);
      return inBoth({ snippets: found.map(({ name, description }) => ({ name, description })) });
    },
  });
  addTool(served, {
    name: 'get_snippet',
    title: 'Get a snippet',
    description: 'The code of a saved snippet.',
    input: OfSnippetArguments,
    output: SnippetCodeView,
    annotations: READS,
    act: async ({ name }) => {
      const { snippets } = await desk.workbenches();
      const { description, code } = await snippets.get(desk.owner, name);
      return { structured: { name, description, code }, text: `${name}: ${description}\n${code}` };
    },
  });
}
