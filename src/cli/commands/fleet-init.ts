import type { Command } from 'commander';
import type { CommandContext } from '../program.ts';

const EXAMPLES = `
Examples:
  hotcell fleet init
  hotcell fleet init --json

Writes .mahabharatha/config.yaml, with every setting explained and at its default, and the folder .gsd/specs. What is
there already is left as it is. Next: \`hotcell fleet plan NAME 'what it should do'\`.`;

export function addFleetInitCommand(parent: Command, { terminal }: CommandContext): void {
  parent
    .command('init')
    .description('prepare this repository: a configuration with everything explained')
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (options: { readonly json?: true }) => {
      const [{ writeInitialFiles }, { findRepositoryRoot }] = await Promise.all([
        import('../../fleet/planning/initial-files.ts'),
        import('../../fleet/find-root.ts'),
      ]);
      const root = findRepositoryRoot(process.cwd());
      const files = await writeInitialFiles(root);
      if (options.json === true) {
        terminal.json({ root, files: files.map(({ path, isNew }) => ({ path, is_new: isNew })) });
        return;
      }
      for (const { path, isNew } of files)
        terminal.line(isNew ? `${terminal.paint.green('✓')} ${path}` : `  ${path} is there already`);
    });
}
