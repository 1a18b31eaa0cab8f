import type { Command } from 'commander';
import { EXIT_CODES } from '../exit-codes.ts';
import type { CommandContext } from '../program.ts';
import { renderHostReport } from '../render/host-report.ts';
import { addSettingsOptions, readSettings, type SettingsOptions } from '../settings-options.ts';

const EXAMPLES = `
Examples:
  hotcell doctor                     what works here, who keeps which promise, what mends the rest
  hotcell doctor --runtime runsc     the same for gVisor
  hotcell doctor --json

Exits with 0 when the chosen driver can serve, with 1 otherwise.`;

export function addDoctorCommand(program: Command, { terminal, outcome }: CommandContext): void {
  const command = program
    .command('doctor')
    .description('say what works on this machine, what protects, and what would mend the rest')
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (options: SettingsOptions) => {
      const { config } = await readSettings(options, outcome);
      const { inspectHost } = await import('../../app/doctor.ts');
      const { inspectNests } = await import('../../app/inspect-nests.ts');
      const report = await inspectHost(config);
      const serving = report.drivers.find(({ chosen, probe }) => chosen && probe.ok);
      const nests = await inspectNests(config, serving?.name);
      if (options.json === true) terminal.json({ ...report, nests });
      else terminal.line(renderHostReport({ ...report, nests }, terminal.paint));
      const works = report.drivers.some((driver) => driver.chosen && driver.probe.ok);
      outcome.exitCode = works ? EXIT_CODES.done : EXIT_CODES.unhealthy;
    });
  addSettingsOptions(command);
}
