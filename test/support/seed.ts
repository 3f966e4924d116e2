import fc from 'fast-check'

/**
 * Generated cases of the fast suite, and of `.ci/run`, are the same at every run: neither fails by chance. `npm run test:long`
 * draws new ones each time; what they find becomes a test of its own.
 */
const seed = process.env['TEST_SEED']
if (seed !== undefined) fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(seed) })

/** A failing case of the long suite is shown as it is: made smaller, it would take longer than a test may. */
if (process.env['TEST_TABLES'] === 'whole') fc.configureGlobal({ ...fc.readConfigureGlobal(), endOnFailure: true })
