import { Option, type Command } from 'commander';

/** Where an agent is run that is asked one question. */
export interface AgentOptions {
  readonly mode?: 'subprocess' | 'container' | 'auto';
  readonly driver?: 'auto' | 'docker' | 'oci';
  readonly autoBuild?: true;
  readonly config?: string;
}

export function addAgentOptions(command: Command): Command {
  return command
    .optionsGroup('Agent:')
    .addOption(
      new Option('-m, --mode <mode>', 'container (cells), subprocess (no walls) or auto').choices([
        'subprocess',
        'container',
        'auto',
      ]),
    )
    .addOption(new Option('--driver <name>', 'what makes the cell').choices(['auto', 'docker', 'oci']))
    .option('--auto-build', 'build the image of the workers if the engine does not have it')
    .option('--config <file>', 'settings of hotcell, for docker.host, runtime and the like');
}
