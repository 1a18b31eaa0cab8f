import {
  Visitor,
  type Argument,
  type Comment,
  type ParamPattern,
  type ParseResult,
  type Statement,
} from 'oxc-parser';

/** The text of an import, and where its literal stands. */
export interface FoundImport {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

export interface FoundImports {
  readonly imports: FoundImport[];
  /** Where something is imported that no literal names. */
  readonly unreadable: number[];
}

/** Everything that the code imports when it runs: not what stands in comments, strings and types. */
export function findImports({ program, comments }: ParseResult): FoundImports {
  const found: FoundImports = { imports: [], unreadable: [] };
  for (const statement of program.body) {
    const source = sourceOf(statement);
    if (source !== undefined) found.imports.push(source);
  }
  let hasJsx = false;
  /** How many functions around have a parameter of this name: theirs is another one. */
  let hidden = 0;
  const enter = ({ params }: { readonly params: readonly ParamPattern[] }): void => {
    if (params.some(isRequire)) hidden++;
  };
  const leave = ({ params }: { readonly params: readonly ParamPattern[] }): void => {
    if (params.some(isRequire)) hidden--;
  };
  new Visitor({
    FunctionDeclaration: enter,
    'FunctionDeclaration:exit': leave,
    FunctionExpression: enter,
    'FunctionExpression:exit': leave,
    ArrowFunctionExpression: enter,
    'ArrowFunctionExpression:exit': leave,
    JSXElement: () => void (hasJsx = true),
    JSXFragment: () => void (hasJsx = true),
    ImportExpression: ({ source, start }) => take(found, source, start),
    CallExpression: ({ callee, arguments: [first], start }) => {
      const isOurs = callee.type === 'Identifier' && callee.name === 'require' && hidden === 0;
      if (isOurs && first !== undefined) take(found, first, start);
    },
    TSImportEqualsDeclaration: ({ moduleReference, importKind, start }) => {
      const isCode = moduleReference.type === 'TSExternalModuleReference' && importKind !== 'type';
      if (isCode) take(found, moduleReference.expression, start);
    },
  }).visit(program);
  const jsx = hasJsx ? jsxPackage(comments) : undefined;
  if (jsx !== undefined) found.imports.push({ text: jsx, start: 0, end: 0 });
  return found;
}

function sourceOf(statement: Statement): FoundImport | undefined {
  if (statement.type === 'ImportDeclaration') {
    const { importKind, specifiers, source } = statement;
    const isType =
      importKind === 'type' ||
      (specifiers.length > 0 &&
        specifiers.every((one) => one.type === 'ImportSpecifier' && one.importKind === 'type'));
    return isType ? undefined : toFound(source);
  }
  if (statement.type === 'ExportAllDeclaration') {
    return statement.exportKind === 'type' ? undefined : toFound(statement.source);
  }
  if (statement.type !== 'ExportNamedDeclaration' || statement.source === null) return undefined;
  const { exportKind, specifiers, source } = statement;
  const isType =
    exportKind === 'type' || (specifiers.length > 0 && specifiers.every((one) => one.exportKind === 'type'));
  return isType ? undefined : toFound(source);
}

function toFound({ value, start, end }: { value: string; start: number; end: number }): FoundImport {
  return { text: value, start, end };
}

/** A literal, also one in backticks without anything to be filled in. */
function take({ imports, unreadable }: FoundImports, source: Argument, start: number): void {
  if (source.type === 'Literal' && typeof source.value === 'string') {
    imports.push({ text: source.value, start: source.start, end: source.end });
    return;
  }
  const [only] = source.type === 'TemplateLiteral' && source.quasis.length === 1 ? source.quasis : [];
  const text = only?.value.cooked;
  if (text === undefined || text === null) unreadable.push(start);
  else imports.push({ text, start: source.start, end: source.end });
}

function isRequire(param: ParamPattern): boolean {
  return param.type === 'Identifier' && param.name === 'require';
}

/** What JSX becomes calls of; undefined where a pragma names a function of the code itself. */
function jsxPackage(comments: readonly Comment[]): string | undefined {
  const pragmas = comments.map(({ value }) => /@jsx(ImportSource)?\s+(\S+)/.exec(value));
  const source = pragmas.findLast((pragma) => pragma?.[1] !== undefined);
  if (source !== undefined && source !== null) return source[2];
  return pragmas.some((pragma) => pragma !== null) ? undefined : 'react';
}
