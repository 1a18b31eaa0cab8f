import type Docker from 'dockerode';

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

export function toStoredImage(info: Docker.ImageInspectInfo): StoredImage {
  return {
    id: info.Id,
    sizeBytes: info.Size,
    created: info.Created,
    platform: [info.Os, info.Architecture, platformVariant(info)].filter((part) => part !== '').join('/'),
    labels: { ...info.Config.Labels },
  };
}

/** The types of the client do not know of it yet. */
function platformVariant(info: object): string {
  return 'Variant' in info && typeof info.Variant === 'string' ? info.Variant : '';
}

/** `linux/arm64` asks for any variant of it, nothing for any at all. */
export function isOfPlatform(has: string, wanted: string | undefined): boolean {
  return wanted === undefined || has === wanted || has.startsWith(`${wanted}/`) || `linux/${wanted}` === has;
}
