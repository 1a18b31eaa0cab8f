import { Command } from 'commander';
import { driversToTry } from '../app/drivers/choose-driver.ts';
import { isMadeFromImage } from '../app/drivers/driver-choices.ts';
import { EXIT_CODES } from './exit-codes.ts';
import { addSettingsOptions, readSettings, type SettingsOptions } from './settings-options.ts';

// Asked by the launcher before it installs interpreters for cells: may these words make cells from programs of this machine?
// Ends with 0 if so; also with another code where the words are wrong, which the command itself tells.
const command = addSettingsOptions(new Command())
  .allowUnknownOption()
  .allowExcessArguments()
  .exitOverride()
  .configureOutput({ writeOut: () => {}, writeErr: () => {} });
try {
  const options = command.parse(process.argv.slice(2), { from: 'user' }).opts<SettingsOptions>();
  const { config } = await readSettings(options, { exitCode: EXIT_CODES.done, debug: false });
  const names = driversToTry(config, process.platform);
  process.exitCode = names.every(isMadeFromImage) ? EXIT_CODES.unhealthy : EXIT_CODES.done;
} catch {
  process.exitCode = EXIT_CODES.usage;
}
