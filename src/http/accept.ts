interface Accepted {
  readonly type: string;
  readonly quality: number;
}

/** Which of our types a client would rather have by its Accept header; the first one where it has no preference. */
export function preferredType<Type extends string>(
  accept: string | undefined,
  offered: readonly [Type, ...Type[]],
): Type {
  const accepted = (accept ?? '').split(',').map(toAccepted);
  let best = { type: offered[0], quality: 0, place: Infinity };
  for (const type of offered) {
    const place = accepted.findIndex((entry) => entry.type === type);
    const { quality } = accepted[place] ?? wildcardFor(type, accepted);
    const isNamedSooner = quality === best.quality && place !== -1 && place < best.place;
    if (quality > best.quality || (quality > 0 && isNamedSooner)) {
      best = { type, quality, place: place === -1 ? Infinity : place };
    }
  }
  return best.type;
}

function wildcardFor(type: string, accepted: readonly Accepted[]): { readonly quality: number } {
  const range = `${type.split('/')[0]}/*`;
  return (
    accepted.find((entry) => entry.type === range) ??
    accepted.find((entry) => entry.type === '*/*') ?? { quality: 0 }
  );
}

function toAccepted(entry: string): Accepted {
  const [type = '', ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase());
  const given = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
  const quality = given === undefined ? 1 : Number(given);
  return { type, quality: Number.isFinite(quality) ? quality : 0 };
}
