import type * as z from 'zod';
import type { Driver, DriverTraits } from '../core/driver.ts';
import type { Promised } from '../core/enforcement.ts';
import type { LanguageTable } from '../core/language.ts';
import type { Log } from '../core/log.ts';
import type { ImageShelf } from './images/image-shelf.ts';

/** What every driver finds, whatever it is set to. */
export interface DriverSurroundings {
  readonly stateDirectory: string | undefined;
  /** Folder with the guest files. */
  readonly guest: string;
  /** Folder with the recipes of images. */
  readonly recipes: string;
  /** Interpreters that cells have whatever the host has installed, such as the node and bun of the npm packages. */
  readonly tools: readonly { readonly name: string; readonly path: string }[];
  readonly languages: LanguageTable;
  /** Promises that the operator gave up by name. */
  readonly weaker: readonly Promised[];
  /** Of the environment, those that the kind names. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
  /** Told what takes long, such as a pull. */
  onProgress(text: string): void;
}

/** As the configuration has them; nothing for a driver without any. */
type SettingsOf<Shape extends z.core.$ZodLooseShape> = keyof Shape extends never
  ? object
  : z.infer<z.ZodObject<Shape>>;

/** A driver as the registry knows it. Nothing of the driver itself is loaded before it is made. */
export interface DriverKind<Settings extends z.core.$ZodLooseShape = z.core.$ZodLooseShape> {
  readonly traits: DriverTraits;
  /** The systems on which `auto` tries it. Never one without walls around cells: that has to be asked for by name. */
  readonly auto: 'anywhere' | 'never' | readonly NodeJS.Platform[];
  /** Its part of the configuration. */
  readonly settings: Settings;
  readonly variables?: {
    readonly read: readonly string[];
    /** Taken out of the environment, because a library would read them by itself. */
    readonly taken: readonly string[];
  };
  make(around: DriverSurroundings, settings: SettingsOf<Settings>): Promise<Driver>;
  /** The images that its cells are made from. Throws DRIVER_UNAVAILABLE. */
  openImages?(around: DriverSurroundings, settings: SettingsOf<Settings>): Promise<ImageShelf>;
}

/** Keeps the type of the settings. */
export function driverKind<const Settings extends z.core.$ZodLooseShape>(
  kind: DriverKind<Settings>,
): DriverKind<Settings> {
  return kind;
}
