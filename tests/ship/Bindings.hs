{-# LANGUAGE ScopedTypeVariables #-}

-- The promises of the Haskell binding, beside its example.
module Main (main) where

import Control.Concurrent (forkIO, newEmptyMVar, putMVar, takeMVar)
import Control.Exception (evaluate, try)
import Control.Monad (forM, forM_, replicateM, unless)
import Data.Int (Int64, Int8)
import Data.List (isInfixOf)
import Hagane
import System.Environment (getArgs)
import System.Mem (performGC)

expect :: Bool -> String -> IO ()
expect condition text = unless condition (fail text)

fails :: Int -> String -> IO a -> IO ()
fails code part action = do
  found <- try action
  case found of
    Left (HaganeError got message) -> expect (got == code && part `isInfixOf` message) message
    Right _ -> fail ("expected an error with '" ++ part ++ "'")

numbers :: [Int] -> Tensor
numbers sizes = fromList sizes [fromIntegral i / 144 :: Float | i <- [0 .. product sizes - 1]]

main :: IO ()
main = do
  [build] <- getArgs
  model <- openWith 1 build
  let sizes = [1, 3, 6, 8]
      x = numbers sizes
      once = runOutputs model ["y"] [("x", x)]
  found <- inputs model
  expect (found == [Argument "x" 1 sizes sizes]) (show found)
  results <- outputs model
  expect (map argumentName results == ["y"]) "outputs"
  expected <- once
  expect (map (shape . snd) expected == [[1, 10]]) "the output"
  expect (fmap length (lookup "y" expected >>= toList :: Maybe [Float]) == Just 10) "the elements"
  expect ((lookup "y" expected >>= toList :: Maybe [Int64]) == Nothing) "another type"
  threads <- forM [1 .. 4 :: Int] $ \_ -> do
    done <- newEmptyMVar
    _ <- forkIO (replicateM 20 once >>= putMVar done . all (== expected))
    return done
  same <- mapM takeMVar threads
  expect (and same) "threads"
  forM_ [1 .. 200 :: Int] (const once)
  performGC
  expect (toList (fromList [3] [True, False, True]) == Just [True, False, True]) "truth values"
  expect (toList (fromList [2] [-1, 127 :: Int8]) == Just [-1, 127 :: Int8]) "bytes"
  fails 1 "expected 6 elements for the shape [2,3], got 5" (evaluate (fromList [2, 3] [1 .. 5 :: Float]))
  fails 4 "input 'x': axis 3 is 9, expected 8" (run model [("x", numbers [1, 3, 6, 9])])
  fails 1 "there is no input 'z'; the model has: x" (run model [("z", x)])
  fails 5 "input 'x'" (run model [("x", fromList sizes (replicate 144 (0 :: Int64)))])
  fails 1 "'x' has 17 axes" (run model [("x", numbers (replicate 17 1))])
  fails 2 "/nowhere/manifest.json" (open "/nowhere")
  close model
  close model
  fails 1 "the model is closed" once
  putStrLn "fine"
