/** An image that the engine has. */
export interface StoredImage {
  readonly id: string;
  readonly sizeBytes: number;
  /** When it was made, in the form of ISO 8601. */
  readonly created: string;
  /** Such as `linux/amd64` or `linux/arm64/v8`. */
  readonly platform: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** On an image that we built, beside those of its Dockerfile. */
export const RECIPE_LABEL = 'hotcell.recipe';
export const BASE_LABEL = 'hotcell.base';

/** `linux/arm64` asks for any variant of it, nothing for any at all. */
export function isOfPlatform(has: string, wanted: string | undefined): boolean {
  return wanted === undefined || has === wanted || has.startsWith(`${wanted}/`) || `linux/${wanted}` === has;
}
