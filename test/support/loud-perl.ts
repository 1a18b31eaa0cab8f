/** Flags that make perl warn of everything, and loudly: a test with a program of the guest holds that it prints no warning. */
export const LOUD_PERL = ['-w', `-I${import.meta.dirname}`, '-Mloud'] as const;
