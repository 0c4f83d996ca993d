import { Fragment } from 'react';
import { splitHidden } from './hidden-characters.js';
import css from './ui.module.css';

/**
 * Shows an untrusted text with every hidden character made visible. Its direction is that of its
 * letters, and changes nothing around it.
 */
export const VisibleText = ({ text }: { readonly text: string }) => (
  <bdi dir="auto">
    {splitHidden(text).map((part, index) =>
      part.isHidden ? (
        <span key={index} className={css.hidden}>
          {part.text}
        </span>
      ) : (
        <Fragment key={index}>{part.text}</Fragment>
      ),
    )}
  </bdi>
);
