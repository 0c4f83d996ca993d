import type { AttachedText, PromptFile } from '@antiphon/conversation-domain';
import type { BlobStore } from '@antiphon/database';
import { readDocument } from '@antiphon/files-features';
import { createBoundedMap, isAppError } from '@antiphon/kernel';

/**
 * Maximum number of bytes that one prompt reads of all files that are sent as text. It is more than
 * a context has room for, and decoded in some milliseconds.
 */
const MAX_BYTES = 4 * 1024 * 1024;
/** Number of texts of documents that are cached. Their digests name them. */
const MAX_DOCUMENTS = 50;

/** Notes in place of bytes that are gone. */
const GONE: ReadonlyMap<string, string> = new Map([
  ['FILE.ERASED', '[the content of this file was erased]'],
  ['FILE.NO_BYTES', '[the content of this file is lost: its bytes are not stored]'],
]);

/** Returns the note in place of bytes that are gone, by the code of the error of their read. */
export const goneNote = (code: string): string | undefined => GONE.get(code);

/** Returns the text of bytes; null if they are not UTF-8. A part may end within a character. */
const decodeText = (bytes: Uint8Array, isPart: boolean): string | null => {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: isPart });
  } catch {
    return null;
  }
};

type Blobs = Pick<BlobStore, 'read' | 'readPart'>;

/**
 * Reads files as texts, by their digests, so that a replay reads the same. Documents are extracted,
 * and a note stands for bytes that are gone.
 */
export class FileTextReader {
  private readonly documents = createBoundedMap<string | null>(MAX_DOCUMENTS);

  constructor(private readonly blobs: Blobs) {}

  /** Reads one file after another, and of each at most an equal share of the bound. */
  async read(workspace: string, files: readonly PromptFile[]): Promise<AttachedText[]> {
    const share = Math.floor(MAX_BYTES / Math.max(1, files.length));
    const texts: AttachedText[] = [];
    for (const file of files) texts.push(await this.readOne(workspace, file, share));
    return texts;
  }

  private async readOne(workspace: string, file: PromptFile, share: number): Promise<AttachedText> {
    try {
      const document = await this.readDocument(workspace, file);
      if (document !== null) return { ...file, text: document, isExtracted: true };
      const isPart = file.size > share;
      const bytes = await this.blobs.readPart(workspace, file.digest, 0, share);
      return { ...file, text: decodeText(bytes, isPart), isPart };
    } catch (error) {
      const note = isAppError(error) ? goneNote(error.code) : undefined;
      if (note === undefined) throw error;
      return { ...file, text: note };
    }
  }

  /** Returns the text of a document; null for a file that is none. */
  private async readDocument(workspace: string, file: PromptFile): Promise<string | null> {
    const key = `${workspace}\n${file.digest}\n${file.path}`;
    const known = this.documents.get(key);
    if (known !== undefined) return known;
    const text = await readDocument(this.blobs, { workspace, ...file });
    this.documents.put(key, text);
    return text;
  }
}
