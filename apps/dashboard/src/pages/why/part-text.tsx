import type { ReactNode } from 'react';
import { LongText } from '../../ui/json.js';

/** Texts of parts that the log of the session has. */
export interface PartTexts {
  readonly message: string;
  /** Results of tools by the ids of their calls. */
  readonly results: ReadonlyMap<string, string>;
}

/** The name of a part, whose text is shown by a click. */
export const WithText = ({
  text,
  label,
  children,
}: {
  text: string | undefined;
  label: string;
  children: ReactNode;
}) =>
  text === undefined || text === '' ? (
    children
  ) : (
    <details>
      <summary>{children}</summary>
      <LongText text={text} label={label} />
    </details>
  );
