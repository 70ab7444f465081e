/** A certificate with what leads to its authority, and the private key that belongs to it; both PEM. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

/** A certificate that may be replaced while it is used. */
export interface CertificateSource {
  current(): KeyPair;
  /** Calls back with each new pair; returns the way to unsubscribe. */
  onChange(listener: (pair: KeyPair) => void): () => void;
}
