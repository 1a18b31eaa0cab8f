/** An archive that somebody else wrote is not taken. */
export class ArchiveRefusal extends Error {
  readonly code: 'BAD_ARCHIVE' | 'FILE_TOO_LARGE';

  constructor(code: ArchiveRefusal['code'], why: string) {
    super(why);
    this.name = 'ArchiveRefusal';
    this.code = code;
  }
}

export function brokenArchive(why: string): ArchiveRefusal {
  return new ArchiveRefusal('BAD_ARCHIVE', why);
}
