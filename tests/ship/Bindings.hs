{-# LANGUAGE ScopedTypeVariables #-}

-- The promises of the Haskell binding, beside its example: Bindings BUILD GUESTS DAMAGED…
module Main (main) where

import Control.Concurrent (forkIO, newEmptyMVar, putMVar, takeMVar)
import Control.Exception (evaluate, try)
import Control.Monad (forM, forM_, replicateM, unless)
import qualified Data.ByteString as B
import Data.Int (Int64, Int8)
import Data.List (isInfixOf)
import Data.Word (Word64)
import GHC.IO.Encoding (setLocaleEncoding, utf8)
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

mixed :: FilePath -> IO ()
mixed build = withModel build $ \model -> do
  let with key tensor = run model ((key, tensor) : filter ((/= key) . fst) guests)
      guests =
        [ ("x", numbers [2, 3])
        , ("ids", fromList [3] [0, 9, 4 :: Int64])
        , ("flag", fromList [2] [True, False])
        , ("half", Tensor 10 [2] (B.pack [0, 0x3c, 0, 0xc0]))
        , ("größe😀", fromList [1] [maxBound :: Word64])
        ]
  names <- map argumentName <$> inputs model
  expect (names == map fst guests) (show names)
  found <- run model guests
  expect ((lookup "unflagged" found >>= toList) == Just [False, True]) "truth values"
  expect (fmap bytes (lookup "halved" found) == Just (B.pack [0, 0xbc, 0, 0x40])) "halves"
  expect ((lookup "länge😀" found >>= toList) == Just [maxBound :: Word64]) "the largest number"
  none <- with "x" (numbers [0, 3])
  expect (fmap shape (lookup "y" none) == Just [0, 2]) "no rows"
  fails 4 "input 'x': axis 0 is 5, expected 0 to 4" (with "x" (numbers [5, 3]))
  fails 4 "input 'x': axis 1 is 4, expected 3" (with "x" (numbers [2, 4]))
  fails 4 "input 'x': expected 2 axes, got 1" (with "x" (numbers [3]))
  fails 1 "'x' has a negative size" (with "x" (Tensor 1 [-1, 3] B.empty))
  fails 7 "expected memory of 24 bytes, got 0" (with "x" (Tensor 1 [2, 3] B.empty))
  fails 5 "input 'x': expected float32, got unknown (99)" (with "x" (Tensor 99 [2, 3] B.empty))
  fails 1 "there is no input 'z'; the model has: x, ids" (with "z" (numbers [1]))
  fails 1 "there is no input or output \"x\\NUL\"" (with "x\0" (numbers [1]))
  fails 1 "input 'half' is missing" (run model (filter ((/= "half") . fst) guests))
  fails 1 "'look up'" (with "ids" (fromList [1] [10 :: Int64]))
  fails 1 "there is no output 'q'" (runOutputs model ["q"] guests)

main :: IO ()
main = do
  setLocaleEncoding utf8
  (build : other : damaged) <- getArgs
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
  mixed other
  forM_ damaged $ \folder -> do
    failed <- try (open folder)
    case failed of
      Left (HaganeError _ message) -> expect (folder `isInfixOf` message) message
      Right _ -> fail folder
  close model
  close model
  fails 1 "the model is closed" once
  putStrLn "fine"
