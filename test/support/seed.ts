import fc from 'fast-check'

/**
 * Generated cases of the fast suite, and of `.ci/run`, are the same at every run: neither fails by chance. `npm run test:long`
 * draws new ones each time; what they find becomes a test of its own.
 */
const seed = process.env['TEST_SEED']
if (seed !== undefined) fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(seed) })

/** A failure is made smaller for a few minutes, then shown as it is: else the test's time-out would be all that is seen. */
fc.configureGlobal({
  ...fc.readConfigureGlobal(),
  interruptAfterTimeLimit: process.env['TEST_TABLES'] === 'whole' ? 400_000 : 120_000,
  markInterruptAsFailure: true,
})
