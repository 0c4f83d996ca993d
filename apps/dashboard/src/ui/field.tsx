import { useId, type ReactNode } from 'react';
import { Icon } from './icon.js';
import css from './ui.module.css';

interface FieldProps {
  readonly label: string;
  readonly hint?: string;
  /** Says what is wrong with the value. It describes the field, before the hint. */
  readonly error?: string | undefined;
  readonly children: (props: {
    id: string;
    className: string;
    'aria-describedby'?: string;
    'aria-invalid'?: true;
  }) => ReactNode;
}

/** A field of a form with its label, hint and error. */
export const Field = ({ label, hint, error, children }: FieldProps) => {
  const id = useId();
  const describedBy = [error && `${id}-error`, hint && `${id}-hint`].filter(Boolean).join(' ');
  return (
    <div className={css.field}>
      <label htmlFor={id}>{label}</label>
      {children({
        id,
        className: css.input ?? '',
        ...(describedBy && { 'aria-describedby': describedBy }),
        ...(error && { 'aria-invalid': true as const }),
      })}
      {error && (
        <small id={`${id}-error`} className={css.fieldError}>
          <Icon name="warning" size={12} /> {error}
        </small>
      )}
      {hint && <small id={`${id}-hint`}>{hint}</small>}
    </div>
  );
};
