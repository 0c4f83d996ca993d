import type { Page } from 'playwright-core';

/** A file that a test drops or pastes. */
export interface GivenFile {
  readonly name: string;
  readonly text?: string;
  /** Bytes instead of a text. */
  readonly base64?: string;
  readonly type?: string;
}

/** Gives the page an event with files, as a mouse or a clipboard does. */
const giveFiles = (page: Page, kind: 'drop' | 'paste', files: readonly GivenFile[]): Promise<unknown> =>
  page.evaluate(
    `(({ kind, files }) => {
      const transfer = new DataTransfer();
      for (const { name, text = '', base64, type = 'text/plain' } of files) {
        const content = base64 === undefined ? text : Uint8Array.from(atob(base64), (each) => each.charCodeAt(0));
        transfer.items.add(new File([content], name, { type }));
      }
      const target = kind === 'paste' ? document.querySelector('textarea') : document.body;
      const options = { bubbles: true, cancelable: true };
      if (kind === 'paste') return target.dispatchEvent(new ClipboardEvent('paste', { ...options, clipboardData: transfer }));
      target.dispatchEvent(new DragEvent('dragover', { ...options, dataTransfer: transfer }));
      return target.dispatchEvent(new DragEvent('drop', { ...options, dataTransfer: transfer }));
    })(${JSON.stringify({ kind, files })})`,
  );

/** Drops files on the page, away from the field. Returns true if the browser would open them. */
export const dropFiles = async (page: Page, files: readonly GivenFile[]): Promise<boolean> =>
  (await giveFiles(page, 'drop', files)) === true;

/** Pastes files into the field of a message. */
export const pasteFiles = async (page: Page, files: readonly GivenFile[]): Promise<void> => {
  await giveFiles(page, 'paste', files);
};

/** Pastes a text into the field of a message. */
export const pasteText = async (page: Page, text: string): Promise<void> => {
  await page.evaluate(
    `((text) => {
      const transfer = new DataTransfer();
      transfer.setData('text/plain', text);
      const event = new ClipboardEvent('paste', { bubbles: true, cancelable: true, clipboardData: transfer });
      document.querySelector('textarea').dispatchEvent(event);
    })(${JSON.stringify(text)})`,
  );
};
