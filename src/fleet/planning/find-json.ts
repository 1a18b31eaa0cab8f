/** The JSON within what an agent has said: fenced, or plain, or with words around it. Undefined where there is none. */
export function findJson(answer: string): unknown {
  const fenced = [...answer.matchAll(/^[ \t]*```[a-z0-9]*[ \t]*\r?\n([\s\S]*?)^[ \t]*```/gim)].map(
    ([, text = '']) => text,
  );
  const braces = answer.slice(answer.indexOf('{'), answer.lastIndexOf('}') + 1);
  const found = [answer, ...fenced, braces].map(parse).filter((value) => value !== undefined);
  return found.find((value) => 'tasks' in value) ?? found[0];
}

function parse(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
