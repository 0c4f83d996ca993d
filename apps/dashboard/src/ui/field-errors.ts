import { useEffect, useRef, useState, type FormEvent, type RefObject } from 'react';

type FormField = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;
/** Errors of a form by the name of the field. */
export type FieldErrors = Readonly<Record<string, string>>;

/** Says what is wrong with a field and how to correct it; null if it is valid. */
const errorOf = (field: FormField): string | null => {
  const { validity } = field;
  if (validity.valid) return null;
  const label = (field.labels?.[0]?.textContent ?? field.name).toLowerCase();
  if (validity.badInput) return `Enter a number for ${label}.`;
  if (validity.valueMissing || validity.patternMismatch) return `Enter the ${label}.`;
  const { min, max } = field as HTMLInputElement;
  if (validity.rangeUnderflow) return `Enter ${min} or more.`;
  if (validity.rangeOverflow) return `Enter ${max} or less.`;
  if (validity.stepMismatch) return 'Enter a whole number.';
  return field.validationMessage;
};

const errorsOf = (form: HTMLFormElement): FieldErrors => {
  const fields = [...form.elements].filter((element) => 'validity' in element) as FormField[];
  return Object.fromEntries(
    fields.flatMap((field) => {
      const error = field.name === '' ? null : errorOf(field);
      return error === null ? [] : [[field.name, error]];
    }),
  );
};

interface CheckedForm {
  readonly errors: FieldErrors;
  /** Properties of the form element. */
  readonly props: {
    readonly ref: RefObject<HTMLFormElement | null>;
    readonly noValidate: true;
    readonly onSubmit: (event: FormEvent<HTMLFormElement>) => void;
  };
  /** Shows an error that the gateway found. */
  readonly refuse: (name: string, error: string) => void;
}

/**
 * Submits a form if its fields are valid. Otherwise it ties each error to its field and moves the
 * focus to the first of them. The values stay.
 */
export const useCheckedForm = (submit: (form: FormData) => void): CheckedForm => {
  const [errors, setErrors] = useState<FieldErrors>({});
  const ref = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (Object.keys(errors).length === 0) return;
    ref.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus();
  }, [errors]);
  const onSubmit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = event.currentTarget;
    const found = errorsOf(form);
    setErrors(found);
    if (Object.keys(found).length === 0) submit(new FormData(form));
  };
  const refuse = (name: string, error: string): void => setErrors({ [name]: error });
  return { errors, props: { ref, noValidate: true, onSubmit }, refuse };
};
