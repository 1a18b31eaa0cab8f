import { join } from 'node:path';
import { Option, type Command } from 'commander';
import { WORKER_DRIVERS, isMadeFromImage, requireWorkerDriver } from '../../app/drivers/driver-choices.ts';
import type { WorkerImageOptions } from '../../app/fleet/fleet-image.ts';
import { toSizeText } from '../../lib/size-text.ts';
import { usageError } from '../exit-codes.ts';
import type { CommandContext } from '../program.ts';
import { ProgressLine } from '../progress-line.ts';
import { readSettings } from '../settings-options.ts';

const EXAMPLES = `
Examples:
  hotcell fleet build
  hotcell fleet build --base my-node:24         from an image of yours; a local one needs no registry
  hotcell fleet build --platform linux/arm64
  hotcell fleet build --agent-version 2.1.300   another Claude Code than the one that was tried
  hotcell fleet build --driver oci              for cells without images: installs Claude Code once

Unless a driver is named, here or in .mahabharatha/config.yaml, it makes what a run would use: the image where an
engine answers, else the folder for cells without images. The npm of this machine fetches Claude Code, with the registry, certificates and proxies that it is set to; the
build itself needs a network only for what the base lacks of node, npm, git, python3, pip and certificates.
What is there already is not built again.`;

interface Options extends Omit<WorkerImageOptions, 'onProgress'> {
  readonly driver?: (typeof WORKER_DRIVERS)[number];
  readonly docker?: true;
  readonly config?: string;
  readonly json?: true;
}

export function addFleetBuildCommand(parent: Command, { terminal, outcome }: CommandContext): void {
  parent
    .command('build')
    .description('make what workers run in: the image mahabharatha-worker, with Claude Code inside')
    .option('--base <image>', 'image to build from, instead of node:24-slim')
    .option('--platform <platform>', 'such as linux/arm64; that of the engine unless given')
    .option('--agent-version <version>', 'of Claude Code; the one that was tried unless given')
    .addOption(new Option('--driver <name>', 'what makes the cells').choices(WORKER_DRIVERS))
    .option('--rebuild', 'build it even if it is there')
    .option('--docker', 'the image, and nothing else')
    .option('--config <file>', 'settings of hotcell, for docker.host')
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (options: Options) => {
      const { driver: asked } = options;
      const image = (options.base ?? options.platform ?? options.docker) !== undefined;
      if (image && asked !== undefined && asked !== 'auto' && !isMadeFromImage(asked))
        throw usageError(
          `cells of the driver ${asked} have no image`,
          'Leave out --base, --platform and --docker.',
        );
      const { config } = await readSettings({ config: options.config }, outcome);
      const [{ agentShelf, buildWorkerImage }, { findMaker }, { installAgentFolder }] = await Promise.all([
        import('../../app/fleet/fleet-image.ts'),
        import('../../app/fleet/find-maker.ts'),
        import('../../fleet/agent/agent-folder.ts'),
      ]);
      const found = await findMaker(config, {
        driver: asked ?? (image ? 'auto' : await readConfiguredDriver()),
        image,
      });
      if (found.driver === undefined) throw found.error;
      const { driver } = found;
      using progress = new ProgressLine(terminal);
      const onProgress = (text: string): void => progress.show(`fleet: ${text}`);
      if (!isMadeFromImage(driver)) {
        const installed = await installAgentFolder(agentShelf(), onProgress, options.agentVersion);
        progress.clear();
        const { folder, version, wasThere } = installed;
        if (options.json === true)
          terminal.json({ driver, folder, agent_version: version, was_there: wasThere });
        else
          terminal.line(
            `${terminal.paint.green('✓')} Claude Code ${version} ${wasThere ? 'is there' : 'installed'}: ${folder}`,
          );
        return;
      }
      const built = await buildWorkerImage(config, { ...options, onProgress });
      progress.clear();
      if (options.json === true) {
        terminal.json({
          driver,
          image: built.image,
          id: built.id,
          base: built.base,
          platform: built.platform,
          size_bytes: built.sizeBytes,
          agent_version: built.agentVersion,
          was_there: built.wasThere,
        });
        return;
      }
      const what = `${built.image} from ${built.base} with Claude Code ${built.agentVersion}`;
      const note = built.wasThere ? 'as it was' : toSizeText(built.sizeBytes);
      terminal.line(`${terminal.paint.green('✓')} ${what}, ${note}`);
    });
}

/** Of the repository that we are in, if any. */
async function readConfiguredDriver(): Promise<(typeof WORKER_DRIVERS)[number]> {
  const [{ findRepositoryRoot }, { readFleetConfig }] = await Promise.all([
    import('../../fleet/find-root.ts'),
    import('../../fleet/read-fleet-config.ts'),
  ]);
  let root: string;
  try {
    root = findRepositoryRoot(process.cwd());
  } catch {
    return 'auto';
  }
  const { config } = await readFleetConfig(join(root, '.mahabharatha/config.yaml'), WORKER_DRIVERS);
  return requireWorkerDriver(config.workers.driver);
}
