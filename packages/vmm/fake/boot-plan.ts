/** How the boot of a fake VM goes. */
export type BootPlan =
  /** the guest comes up, at once or after `delayMs` */
  | { readonly kind: 'ok'; readonly delayMs?: number }
  /** the guest never comes up: it takes connections and never answers */
  | { readonly kind: 'hang' }
  /** the VM starts and ends by itself */
  | { readonly kind: 'die'; readonly afterMs?: number; readonly lastLine?: string }
  /** the VMM does not even start */
  | { readonly kind: 'refuse'; readonly message?: string };
