/** A file that a client sends. */
export interface SentFile {
  /** Below the workspace. */
  readonly path: string;
  readonly content: string;
  readonly encoding: 'utf8' | 'base64';
  /** Permission bits; a number, or octal digits as text. */
  readonly mode?: number | string | undefined;
}

/** A file that a client has, with its content or only with the SHA-256 of it. */
export interface SyncFile extends Pick<SentFile, 'path' | 'encoding' | 'mode'> {
  readonly hash?: string | undefined;
  readonly content?: string | undefined;
}

export interface SyncWish {
  readonly files: readonly SyncFile[];
  /** Remove files that an earlier sync or upload brought and this one does not name. */
  readonly delete: boolean;
}

export interface SyncReport {
  /** Files written. */
  readonly synced: number;
  /** Files that were there already. */
  readonly skipped: number;
  readonly deleted: number;
  /** Paths whose content has to be sent. */
  readonly needed: readonly string[];
}

export interface FileChange {
  readonly path: string;
  readonly change: 'added' | 'modified' | 'deleted';
  readonly size: number;
  readonly mode: number;
}

/** A file with its content, or a folder with its entries. */
export type PathContent =
  | {
      readonly kind: 'file';
      readonly path: string;
      readonly content: string;
      readonly encoding: 'utf8' | 'base64';
      readonly size: number;
      readonly mode: number;
    }
  | { readonly kind: 'folder'; readonly path: string; readonly entries: FolderEntry[] };

export interface FolderEntry {
  readonly name: string;
  readonly kind: 'file' | 'folder' | 'link' | 'other';
  readonly size: number;
  readonly mode: number;
}

export interface PatchedFile {
  readonly path: string;
  readonly status: 'applied' | 'created' | 'deleted';
}
