/** What a registry is shown. Never logged, never part of an error. */
export type Credentials =
  | { readonly kind: 'password'; readonly username: string; readonly password: string }
  /** for the token server (`identitytoken` of Docker's configuration) */
  | { readonly kind: 'identity-token'; readonly token: string }
  /** for the registry itself (`registrytoken`) */
  | { readonly kind: 'registry-token'; readonly token: string };

export interface CredentialSource {
  /**
   * The credentials for a repository, or undefined when there are none.
   * @param host as `RegistryReference` has it
   */
  find(host: string, repository: string): Promise<Credentials | undefined>;
}

export const noCredentials: CredentialSource = { find: () => Promise.resolve(undefined) };
