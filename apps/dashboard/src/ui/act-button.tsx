import { useRefusal } from '../data/act.js';
import { Button } from './ui.js';
import type { IconName } from './icon.js';

interface ActButtonProps {
  readonly permission: string;
  readonly onClick?: () => void;
  readonly type?: 'button' | 'submit';
  readonly look?: 'primary' | 'danger' | 'quiet';
  readonly icon?: IconName;
  readonly isOff?: boolean;
  readonly children: string;
}

/** A button that changes something. It is off in the past and without the permission, and says why. */
export const ActButton = ({ permission, isOff = false, children, look, icon, ...rest }: ActButtonProps) => {
  const refusal = useRefusal(permission);
  return (
    <Button
      look={look}
      {...(icon ? { icon } : {})}
      disabled={isOff || refusal !== null}
      title={refusal ?? undefined}
      {...rest}
    >
      {children}
    </Button>
  );
};
