import type { Command } from 'commander';
import type { ImageOverview, LanguageImage } from '../../app/images/images.ts';
import { toSizeText } from '../../lib/size-text.ts';
import type { CommandContext } from '../program.ts';
import { renderTable } from '../render/table.ts';
import { addSettingsOptions, readSettings, type SettingsOptions } from '../settings-options.ts';
import type { Terminal } from '../terminal.ts';

const EXAMPLES = `
Examples:
  hotcell images
  hotcell images --json
  hotcell images --set docker.host=unix:///run/user/1000/docker.sock

Shows the image that the driver would use for each language, where it uses images: the one that \`hotcell build\`
made, otherwise that of the setting languages.<name>.image, which is pulled when it is missing. Without a
language is the image of the fleet's workers, which \`hotcell fleet build\` makes.`;

export function addImagesCommand(program: Command, { terminal, outcome }: CommandContext): void {
  const command = program
    .command('images')
    .description('list the image of each language and how to get it, for drivers that use images')
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (options: SettingsOptions) => {
      const { config } = await readSettings(options, outcome);
      const { lookAtImages } = await import('../../app/images/images.ts');
      const images = toRows(await lookAtImages(config));
      if (options.json === true) {
        terminal.json(images.map(toJson));
        return;
      }
      const rows = images.map((image) => toRow(image, terminal.paint));
      terminal.line(renderTable([['LANGUAGE', 'IMAGE', 'PRESENT', 'SIZE', 'GET IT WITH'], ...rows]));
    });
  addSettingsOptions(command);
}

type Row = Omit<LanguageImage, 'language'> & { readonly language: string | undefined };

function toRows({ languages, worker }: ImageOverview): Row[] {
  if (worker === undefined) return [...languages];
  return [
    ...languages,
    { language: undefined, image: worker.name, entry: worker, commands: ['hotcell fleet build'] },
  ];
}

function toJson({ language, image, entry, commands }: Row): Record<string, unknown> {
  return {
    language: language ?? null,
    image: image ?? null,
    present: entry?.stored !== undefined,
    built: entry?.recipe !== undefined,
    outdated: entry?.outdated ?? false,
    id: entry?.stored?.id ?? null,
    size_bytes: entry?.stored?.sizeBytes ?? null,
    created: entry?.stored?.created ?? null,
    commands,
  };
}

function toRow({ language = '-', image, entry, commands }: Row, paint: Terminal['paint']): string[] {
  const stored = entry?.stored;
  const present = stored === undefined ? paint.red('no') : paint.green('yes');
  return [
    language,
    image ?? '',
    entry?.outdated === true ? paint.yellow('outdated') : present,
    stored === undefined ? '' : toSizeText(stored.sizeBytes),
    image === undefined ? `set languages.${language}.image` : commands.join(', or '),
  ];
}
