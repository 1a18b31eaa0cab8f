import { Option, type Command } from 'commander';
import { WORKER_DRIVERS } from '../../app/drivers/driver-choices.ts';
import { WEAKER, type SettingsOptions } from '../settings-options.ts';
import { FLEET_MODES, PLAIN_MODE, type FleetMode } from '../../fleet/fleet-site.ts';

/** Where an agent is run that is asked one question. */
export interface AgentOptions {
  readonly mode?: FleetMode | 'auto';
  readonly driver?: string;
  readonly weaker?: string;
  readonly autoBuild?: true;
  readonly config?: string;
  readonly json?: true;
}

/** `--mode`, `--driver` and `--weaker`, for everything that runs an agent. */
export function addModeOptions(command: Command): Command {
  return command
    .addOption(
      new Option('-m, --mode <mode>', `container (cells), ${PLAIN_MODE} (no walls) or auto`).choices([
        ...FLEET_MODES,
        'auto',
      ]),
    )
    .addOption(new Option('--driver <name>', 'what makes the cells').choices(WORKER_DRIVERS))
    .option(...WEAKER);
}

/** Of the other options some have the name of a setting, and mean something else. */
export function toSettings({ config, weaker }: AgentOptions): SettingsOptions {
  return { config, weaker };
}

export function addAgentOptions(command: Command): Command {
  return addModeOptions(command.optionsGroup('Agent:'))
    .option('--auto-build', 'build what the workers need if it is missing, as `hotcell fleet build` does')
    .option('--config <file>', 'settings of hotcell, for docker.host, runtime and the like');
}
