import { KEY_CHANGED_SUBJECT, type NatsLink } from '@antiphon/messaging';

const KEY_ID = /^[a-z2-7]{16}$/;

/** Tells every gateway that a key has changed. A notification may be lost, so gateways poll too. */
export const publishKeyChange = (link: NatsLink, keyId: string): void => {
  if (link.isConnected() && !link.connection.isDraining())
    link.connection.publish(KEY_CHANGED_SUBJECT, keyId);
};

/** Calls `onChange` with the id of each key that changes. Returns an unsubscribe function. */
export const subscribeKeyChanges = (link: NatsLink, onChange: (keyId: string) => void): (() => void) => {
  const subscription = link.connection.subscribe(KEY_CHANGED_SUBJECT, {
    callback: (error, message) => {
      const keyId = error ? '' : message.string();
      if (KEY_ID.test(keyId)) onChange(keyId);
    },
  });
  return () => subscription.unsubscribe();
};
