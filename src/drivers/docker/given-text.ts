/** An empty variable counts as one that is not set, as with the docker command. */
export function given(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}
