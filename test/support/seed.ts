import fc from 'fast-check'

/**
 * Generated cases of the fast suite are the same at every run: it never fails by chance. The long suite draws new ones
 * each time; what it finds becomes a test of its own.
 */
fc.configureGlobal({ seed: 20261122 })
