import { failed, scanImports } from './scan-imports.ts';
import { ScanQuestion, type ImportScan } from './scan-messages.ts';

/** The other side of `ImportScanner`: answers one question after the other, and ends when nobody can ask any more. */
process.on('message', (message) => {
  process.send?.(answer(ScanQuestion.parse(message)));
});

function answer({ code, fileName }: ScanQuestion): ImportScan {
  try {
    return scanImports(code, { fileName });
  } catch (error) {
    // Too deep for us, though not for the parser.
    if (error instanceof RangeError || error instanceof SyntaxError) {
      return failed('syntax', 'the code is too deeply nested to be read');
    }
    throw error;
  }
}
