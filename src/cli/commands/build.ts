import type { Command } from 'commander';
import { toSizeText } from '../../lib/size-text.ts';
import type { CommandContext } from '../program.ts';
import { ProgressLine } from '../progress-line.ts';
import { addSettingsOptions, readSettings, type SettingsOptions } from '../settings-options.ts';

const EXAMPLES = `
Examples:
  hotcell build                                  all images: python, ruby, node, bun, shell and bun-runner-base
  hotcell build python node
  hotcell build python --base my-python:3.12     from an image of yours; a local one needs no registry
  hotcell build ruby --platform linux/arm64
  hotcell build mahabharatha-worker              for workers of the fleet; \`hotcell fleet build\` has more options

These drivers prefer what is built here to the image of the registry. An image has a user that
is not root, the interpreter, and perl and bash, which cells need. \`hotcell images\` lists them.`;

interface Options extends SettingsOptions {
  readonly base?: string;
  readonly platform?: string;
}

export function addBuildCommand(program: Command, { terminal, outcome }: CommandContext): void {
  const command = program
    .command('build')
    .description('build the images of the docker driver')
    .argument(
      '[names...]',
      'python, ruby, node, bun, shell, bun-runner-base (all of these unless given), mahabharatha-worker',
    )
    .option('--base <image>', 'image to build from, instead of the official one')
    .option('--platform <platform>', 'such as linux/arm64; that of the engine unless given')
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (names: string[], options: Options) => {
      const { config } = await readSettings(options, outcome);
      const { buildImages } = await import('../../app/images/images.ts');
      const { base, platform } = options;
      using progress = new ProgressLine(terminal);
      const rows: Record<string, unknown>[] = [];
      for await (const built of buildImages(config, { names, base, platform }, (text) =>
        progress.show(`hotcell: ${text}`),
      )) {
        progress.clear();
        rows.push({
          name: built.name,
          image: built.image,
          id: built.id,
          base: built.base,
          platform: built.platform,
          size_bytes: built.sizeBytes,
        });
        if (options.json === true) continue;
        const size = toSizeText(built.sizeBytes);
        terminal.line(`${terminal.paint.green('✓')} ${built.image} from ${built.base}, ${size}`);
      }
      if (options.json === true) terminal.json(rows);
    });
  addSettingsOptions(command);
}
